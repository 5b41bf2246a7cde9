(** The transformer: one layer of attention and an MLP, as in [src/abacist/models/].

    The forward pass is written once, for any arithmetic. With the real numbers it is the function
    that the theorem speaks of; with intervals (Intervals.v) it is a program that bounds that
    function. A vector is a list of numbers, and a matrix is a list of its rows.

    Attention ranges over the list of visible tokens only. The package computes scores for all
    tokens and gives the masked ones -10^30, so that their weights are 0. *)

From Coq Require Import List Reals ZArith.
Import ListNotations.

(** * Arithmetic *)

Record arithmetic (A : Type) := Arithmetic {
  ratio : Z -> Z -> A;
  add : A -> A -> A;
  mul : A -> A -> A;
  div : A -> A -> A;
  square_root : A -> A;
  exponential : A -> A;
  relu : A -> A;
}.
Arguments ratio {A}. Arguments add {A}. Arguments mul {A}. Arguments div {A}.
Arguments square_root {A}. Arguments exponential {A}. Arguments relu {A}.

Definition real_arithmetic : arithmetic R := {|
  ratio := fun p q => (IZR p / IZR q)%R;
  add := Rplus;
  mul := Rmult;
  div := Rdiv;
  square_root := sqrt;
  exponential := exp;
  relu := Rmax 0;
|}.

(** * Weights *)

(** Names are those of the package's modules; see [src/abacist/models/block.py]. *)
Record weights (A : Type) := Weights {
  num_heads : nat;
  head_width : nat;
  embedding : list (list A);        (* one row for each token of the vocabulary *)
  attention_norm : list A;
  query : list (list A);
  key : list (list A);
  value : list (list A);
  output : list (list A);
  relative : list (list A);         (* one row for each bucket: a bias for each head *)
  mlp_norm : list A;
  up : list (list A);
  up_bias : list A;
  down : list (list A);
  final_norm : list A;
  head : list (list A);             (* one row for each token of the vocabulary *)
}.
Arguments Weights {A}.
Arguments num_heads {A}. Arguments head_width {A}. Arguments embedding {A}.
Arguments attention_norm {A}. Arguments query {A}. Arguments key {A}. Arguments value {A}.
Arguments output {A}. Arguments relative {A}. Arguments mlp_norm {A}. Arguments up {A}.
Arguments up_bias {A}. Arguments down {A}. Arguments final_norm {A}. Arguments head {A}.

Definition map_weights {A B} (f : A -> B) (w : weights A) : weights B := {|
  num_heads := num_heads w;
  head_width := head_width w;
  embedding := map (map f) (embedding w);
  attention_norm := map f (attention_norm w);
  query := map (map f) (query w);
  key := map (map f) (key w);
  value := map (map f) (value w);
  output := map (map f) (output w);
  relative := map (map f) (relative w);
  mlp_norm := map f (mlp_norm w);
  up := map (map f) (up w);
  up_bias := map f (up_bias w);
  down := map (map f) (down w);
  final_norm := map f (final_norm w);
  head := map (map f) (head w);
|}.

(** A float32 weight is exactly m / 2^e with integers m and e >= 0; Weights.v lists the pairs. *)
Definition dyadic := (Z * Z)%type.

Definition load {A} (o : arithmetic A) : weights dyadic -> weights A :=
  map_weights (fun '(m, e) => ratio o m (2 ^ e)%Z).

(** * Forward pass *)

Fixpoint map2 {A B C} (f : A -> B -> C) (a : list A) (b : list B) : list C :=
  match a, b with
  | x :: a', y :: b' => f x y :: map2 f a' b'
  | _, _ => []
  end.

(** The first [n] pieces of [width] numbers each. *)
Fixpoint pieces {A} (n width : nat) (v : list A) : list (list A) :=
  match n with
  | O => []
  | S n' => firstn width v :: pieces n' width (skipn width v)
  end.

Section Forward.
Context {A : Type} (o : arithmetic A) (w : weights A).

Definition zero : A := ratio o 0 1.
Definition natural (n : nat) : A := ratio o (Z.of_nat n) 1.
Definition sum : list A -> A := fold_right (add o) zero.
Definition dot (a b : list A) : A := sum (map2 (mul o) a b).
Definition add_vectors : list A -> list A -> list A := map2 (add o).
Definition sum_vectors (width : nat) : list (list A) -> list A :=
  fold_right add_vectors (repeat zero width).
Definition linear (m : list (list A)) (v : list A) : list A := map (fun row => dot row v) m.

(** RMSNorm, with the package's epsilon of 10^-6. *)
Definition rms_norm (gain x : list A) : list A :=
  let mean := div o (dot x x) (natural (length x)) in
  let size := square_root o (add o mean (ratio o 1 1000000)) in
  map2 (fun g y => mul o (div o y size) g) gain x.

(** What attention needs to know about a token. It depends on the token alone: there is one layer,
    and no position is added to the embedding. Queries, keys and values are listed by head. *)
Record projection := Projection {
  resid : list A;
  queries : list (list A);
  keys : list (list A);
  values : list (list A);
}.

Definition split_heads : list A -> list (list A) := pieces (num_heads w) (head_width w).

Definition project (x : list A) : projection :=
  let normed := rms_norm (attention_norm w) x in
  {| resid := x;
     queries := split_heads (linear (query w) normed);
     keys := split_heads (linear (key w) normed);
     values := split_heads (linear (value w) normed) |}.

Definition nothing : projection := Projection [] [] [] [].

(** One visible token, as one head sees it. *)
Record sight := Sight { seen_key : list A; seen_value : list A; seen_bias : A }.

Definition scale : A := div o (natural 1) (square_root o (natural (head_width w))).

Definition score (q : list A) (s : sight) : A :=
  add o (mul o (dot q (seen_key s)) scale) (seen_bias s).

Definition attend (q : list A) (seen : list sight) : list A :=
  let exponentials := map (fun s => exponential o (score q s)) seen in
  let total := sum exponentials in
  let mixed := map2 (fun e s => map (mul o e) (seen_value s)) exponentials seen in
  map (fun x => div o x total) (sum_vectors (head_width w) mixed).

Definition mlp (x : list A) : list A :=
  linear (down w) (map (relu o) (add_vectors (linear (up w) x) (up_bias w))).

(** Logits after the token with id [q], where [visible] lists the ids of the tokens it sees, each
    with its bucket: the row of [relative] that belongs to the difference of their places. *)
Definition forward : nat -> list (nat * nat) -> list A :=
  let vocabulary := map project (embedding w) in
  fun q visible =>
    let token id := nth id vocabulary nothing in
    let sight_of h '(id, bucket) :=
      {| seen_key := nth h (keys (token id)) [];
         seen_value := nth h (values (token id)) [];
         seen_bias := nth h (nth bucket (relative w) []) zero |} in
    let mixed :=
      flat_map (fun h => attend (nth h (queries (token q)) []) (map (sight_of h) visible))
        (seq 0 (num_heads w)) in
    let middle := add_vectors (resid (token q)) (linear (output w) mixed) in
    let last := add_vectors middle (mlp (rms_norm (mlp_norm w) middle)) in
    linear (head w) (rms_norm (final_norm w) last).

End Forward.
