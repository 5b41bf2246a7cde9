(** The forward pass in interval arithmetic, and the proof that it encloses the one over the reals.

    The intervals are those of the library coq-interval, over the processor's floats of 53 bits. *)

From Coq Require Import List Reals ZArith Lra Lia.
From Interval Require Import Float.Primitive_ops Interval.Float_full Interval.Interval.
From Interval Require Import Real.Xreal Float.Basic.
From Formal Require Import Model.
Import ListNotations.

Module F := PrimitiveFloat.
Module I := FloatIntervalFull F.

Definition precision : F.precision := F.PtoP 53.

Definition interval_arithmetic : arithmetic I.type := {|
  ratio := fun p q => I.div precision (I.fromZ precision p) (I.fromZ precision q);
  add := I.add precision;
  mul := I.mul precision;
  div := I.div precision;
  square_root := I.sqrt precision;
  exponential := I.exp precision;
  (* max(0, x) is (x + |x|) / 2, which needs only operations that the library proves. *)
  relu := fun x => I.div precision (I.add precision x (I.abs x)) (I.fromZ precision 2);
|}.

(** * Enclosure *)

(** The interval [i] contains the real number [x]. *)
Definition encloses (i : I.type) (x : R) : Prop := contains (I.convert i) (Xreal x).

Local Notation oI := interval_arithmetic.
Local Notation oR := real_arithmetic.

Lemma undefined_encloses_all i x : contains (I.convert i) Xnan -> encloses i x.
Proof. unfold encloses. destruct (I.convert i); simpl; tauto. Qed.

Lemma add_encloses a b x y : encloses a x -> encloses b y -> encloses (add oI a b) (add oR x y).
Proof. exact (I.add_correct precision a b (Xreal x) (Xreal y)). Qed.

Lemma mul_encloses a b x y : encloses a x -> encloses b y -> encloses (mul oI a b) (mul oR x y).
Proof. exact (I.mul_correct precision a b (Xreal x) (Xreal y)). Qed.

(** A divisor of 0 gives the interval of all numbers, so nothing has to be assumed of it. *)
Lemma div_encloses a b x y : encloses a x -> encloses b y -> encloses (div oI a b) (div oR x y).
Proof.
  intros Ha Hb. generalize (I.div_correct precision a b (Xreal x) (Xreal y) Ha Hb).
  simpl. unfold Xdiv'. destruct (is_zero_spec y).
  - apply undefined_encloses_all.
  - exact (fun H => H).
Qed.

Lemma square_root_encloses a x : encloses a x -> encloses (square_root oI a) (square_root oR x).
Proof. exact (I.sqrt_correct precision a (Xreal x)). Qed.

Lemma exponential_encloses a x : encloses a x -> encloses (exponential oI a) (exponential oR x).
Proof. exact (I.exp_correct precision a (Xreal x)). Qed.

Lemma integer_encloses p : encloses (I.fromZ precision p) (IZR p).
Proof. exact (I.fromZ_correct precision p). Qed.

Lemma ratio_encloses p q : encloses (ratio oI p q) (ratio oR p q).
Proof. apply div_encloses; apply integer_encloses. Qed.

Lemma zero_encloses : encloses (zero oI) (zero oR).
Proof. exact (ratio_encloses 0 1). Qed.

Lemma relu_encloses a x : encloses a x -> encloses (relu oI a) (relu oR x).
Proof.
  intros Ha.
  replace (relu oR x) with (div oR (add oR x (Rabs x)) (IZR 2)).
  - apply div_encloses; [apply add_encloses; [exact Ha |] | apply integer_encloses].
    exact (I.abs_correct a (Xreal x) Ha).
  - simpl. unfold Rmax. destruct (Rle_dec 0 x); [rewrite Rabs_pos_eq | rewrite Rabs_left]; lra.
Qed.

(** * Lists of enclosures *)

Definition enclose_vector : list I.type -> list R -> Prop := Forall2 encloses.
Definition enclose_matrix : list (list I.type) -> list (list R) -> Prop := Forall2 enclose_vector.

Section Lists.
Context {A B : Type} (r : A -> B -> Prop).

Lemma nth_related n l m a b : Forall2 r l m -> r a b -> r (nth n l a) (nth n m b).
Proof. intros H Hab. revert n. induction H; intros [| n]; simpl; auto. Qed.

Lemma length_related l m : Forall2 r l m -> length l = length m.
Proof. induction 1; simpl; auto. Qed.

Lemma firstn_related n l m : Forall2 r l m -> Forall2 r (firstn n l) (firstn n m).
Proof. intros H. revert n. induction H; intros [| n]; simpl; auto. Qed.

Lemma skipn_related n l m : Forall2 r l m -> Forall2 r (skipn n l) (skipn n m).
Proof. intros H. revert n. induction H; intros [| n]; simpl; auto. Qed.

Lemma repeat_related n a b : r a b -> Forall2 r (repeat a n) (repeat b n).
Proof. intros H. induction n; simpl; auto. Qed.
End Lists.

Lemma map_related {A B C D} (r : A -> B -> Prop) (s : C -> D -> Prop) f g l m :
  (forall a b, r a b -> s (f a) (g b)) -> Forall2 r l m -> Forall2 s (map f l) (map g m).
Proof. intros Hf H. induction H; simpl; auto. Qed.

Lemma map_same {A C D} (s : C -> D -> Prop) (f : A -> C) (g : A -> D) l :
  (forall a, s (f a) (g a)) -> Forall2 s (map f l) (map g l).
Proof. intros Hf. induction l; simpl; auto. Qed.

Lemma flat_map_same {A C D} (s : C -> D -> Prop) (f : A -> list C) (g : A -> list D) l :
  (forall a, Forall2 s (f a) (g a)) -> Forall2 s (flat_map f l) (flat_map g l).
Proof. intros Hf. induction l; simpl; auto using Forall2_app. Qed.

Lemma map2_related {A B C A' B' C'} (r : A -> A' -> Prop) (s : B -> B' -> Prop)
  (t : C -> C' -> Prop) f g l l' m m' :
  (forall a a' b b', r a a' -> s b b' -> t (f a b) (g a' b')) ->
  Forall2 r l l' -> Forall2 s m m' -> Forall2 t (map2 f l m) (map2 g l' m').
Proof.
  intros Hf H. revert m m'. induction H; intros m m' H'; destruct H'; simpl; auto.
Qed.

Lemma pieces_related {A B} (r : A -> B -> Prop) n width l m :
  Forall2 r l m -> Forall2 (Forall2 r) (pieces n width l) (pieces n width m).
Proof.
  revert l m. induction n; intros l m H; simpl; auto using firstn_related, skipn_related.
Qed.

(** * The forward pass *)

Lemma sum_encloses l m : enclose_vector l m -> encloses (sum oI l) (sum oR m).
Proof.
  induction 1.
  - exact (ratio_encloses 0 1).
  - apply (add_encloses x (sum oI l) y (sum oR l')); assumption.
Qed.

Lemma dot_encloses a b x y :
  enclose_vector a x -> enclose_vector b y -> encloses (dot oI a b) (dot oR x y).
Proof.
  intros Ha Hb. apply sum_encloses.
  exact (map2_related _ _ _ _ _ _ _ _ _ (fun _ _ _ _ => mul_encloses _ _ _ _) Ha Hb).
Qed.

Lemma add_vectors_encloses a b x y :
  enclose_vector a x -> enclose_vector b y ->
  enclose_vector (add_vectors oI a b) (add_vectors oR x y).
Proof.
  exact (map2_related _ _ _ _ _ _ _ _ _ (fun _ _ _ _ => add_encloses _ _ _ _)).
Qed.

Lemma sum_vectors_encloses width l m :
  enclose_matrix l m -> enclose_vector (sum_vectors oI width l) (sum_vectors oR width m).
Proof.
  induction 1.
  - apply repeat_related. exact zero_encloses.
  - apply add_vectors_encloses; assumption.
Qed.

Lemma linear_encloses m v m' v' :
  enclose_matrix m m' -> enclose_vector v v' -> enclose_vector (linear oI m v) (linear oR m' v').
Proof.
  intros Hm Hv. refine (map_related _ _ _ _ _ _ _ Hm). intros. apply dot_encloses; assumption.
Qed.

Lemma rms_norm_encloses g x g' x' :
  enclose_vector g g' -> enclose_vector x x' ->
  enclose_vector (rms_norm oI g x) (rms_norm oR g' x').
Proof.
  intros Hg Hx. unfold rms_norm. refine (map2_related _ _ _ _ _ _ _ _ _ _ Hg Hx).
  intros a a' b b' Ha Hb. apply mul_encloses; [apply div_encloses |]; try assumption.
  apply square_root_encloses, add_encloses; [apply div_encloses | apply ratio_encloses].
  - apply dot_encloses; assumption.
  - rewrite (length_related _ _ _ Hx). apply ratio_encloses.
Qed.

(** The weights of which everything is a function, as intervals and as real numbers. *)
Section Weights.
Variable w : weights dyadic.
Let wI := load oI w.
Let wR := load oR w.

Lemma vector_encloses (v : list dyadic) :
  enclose_vector (map (fun '(m, e) => ratio oI m (2 ^ e)) v)
                 (map (fun '(m, e) => ratio oR m (2 ^ e)) v).
Proof. apply map_same. intros [m e]. apply ratio_encloses. Qed.

Lemma matrix_encloses (m : list (list dyadic)) :
  enclose_matrix (map (map (fun '(m, e) => ratio oI m (2 ^ e))) m)
                 (map (map (fun '(m, e) => ratio oR m (2 ^ e))) m).
Proof. apply map_same. apply vector_encloses. Qed.

Definition enclose_projection (p : projection (A := I.type)) (p' : projection (A := R)) : Prop :=
  enclose_vector (resid p) (resid p') /\ enclose_matrix (queries p) (queries p') /\
  enclose_matrix (keys p) (keys p') /\ enclose_matrix (values p) (values p').

Lemma project_encloses x x' :
  enclose_vector x x' -> enclose_projection (project oI wI x) (project oR wR x').
Proof.
  intros Hx.
  assert (Hn := rms_norm_encloses _ _ _ _ (vector_encloses (attention_norm w)) Hx).
  repeat split; simpl; try assumption;
    apply pieces_related, linear_encloses; try assumption; apply matrix_encloses.
Qed.

Definition enclose_sight (s : sight (A := I.type)) (s' : sight (A := R)) : Prop :=
  enclose_vector (seen_key s) (seen_key s') /\ enclose_vector (seen_value s) (seen_value s') /\
  encloses (seen_bias s) (seen_bias s').

Lemma scale_encloses : encloses (scale oI wI) (scale oR wR).
Proof.
  apply div_encloses; [apply ratio_encloses | apply square_root_encloses, ratio_encloses].
Qed.

Lemma score_encloses q q' s s' :
  enclose_vector q q' -> enclose_sight s s' ->
  encloses (score oI wI q s) (score oR wR q' s').
Proof.
  intros Hq (Hk & _ & Hb). apply add_encloses; [apply mul_encloses | exact Hb].
  - apply dot_encloses; assumption.
  - apply scale_encloses.
Qed.

Lemma attend_encloses q q' seen seen' :
  enclose_vector q q' -> Forall2 enclose_sight seen seen' ->
  enclose_vector (attend oI wI q seen) (attend oR wR q' seen').
Proof.
  intros Hq Hs. unfold attend.
  assert (He : enclose_vector (map (fun s => exponential oI (score oI wI q s)) seen)
                              (map (fun s => exponential oR (score oR wR q' s)) seen')).
  { refine (map_related _ _ _ _ _ _ _ Hs). intros s s' H.
    apply exponential_encloses, score_encloses; assumption. }
  refine (map_related encloses _ _ _ _ _ _ _).
  - intros x x' Hx. apply div_encloses; [exact Hx | apply sum_encloses; exact He].
  - apply sum_vectors_encloses. refine (map2_related _ _ _ _ _ _ _ _ _ _ He Hs).
    intros e e' s s' Hee (_ & Hv & _). refine (map_related _ _ _ _ _ _ _ Hv).
    intros. apply mul_encloses; assumption.
Qed.

Lemma mlp_encloses x x' :
  enclose_vector x x' -> enclose_vector (mlp oI wI x) (mlp oR wR x').
Proof.
  intros Hx. apply linear_encloses; [apply matrix_encloses |].
  refine (map_related _ _ _ _ _ _ relu_encloses _).
  apply add_vectors_encloses; [apply linear_encloses | apply vector_encloses].
  - apply matrix_encloses.
  - exact Hx.
Qed.

Theorem forward_encloses q visible :
  enclose_vector (forward oI wI q visible) (forward oR wR q visible).
Proof.
  unfold forward.
  assert (Ht : forall id, enclose_projection
    (nth id (map (project oI wI) (embedding wI)) nothing)
    (nth id (map (project oR wR) (embedding wR)) nothing)).
  { intros id. apply nth_related.
    - refine (map_related _ _ _ _ _ _ project_encloses _). apply matrix_encloses.
    - repeat split; constructor. }
  destruct (Ht q) as (Hr & Hq & _).
  match goal with |- enclose_vector (linear _ _ (rms_norm _ _ (add_vectors _ ?m _))) 
                                    (linear _ _ (rms_norm _ _ (add_vectors _ ?m' _))) =>
    assert (Hm : enclose_vector m m') end.
  { apply add_vectors_encloses; [exact Hr |].
    apply linear_encloses; [apply matrix_encloses |].
    apply flat_map_same. intros h. apply attend_encloses.
    - apply nth_related; [exact Hq | constructor].
    - apply map_same. intros [id bucket]. destruct (Ht id) as (_ & _ & Hk & Hv).
      split; [| split]; cbn [seen_key seen_value seen_bias].
      + apply nth_related; [exact Hk | constructor].
      + apply nth_related; [exact Hv | constructor].
      + apply nth_related; [| exact zero_encloses].
        apply nth_related; [apply matrix_encloses | constructor]. }
  apply linear_encloses; [apply matrix_encloses |].
  apply rms_norm_encloses; [apply vector_encloses |].
  apply add_vectors_encloses; [exact Hm |].
  apply mlp_encloses, rms_norm_encloses; [apply vector_encloses | exact Hm].
Qed.

End Weights.
