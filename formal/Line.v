(** Lines: tokens, their places, and what the last token of a line sees.

    This is the format [reversed] of [src/abacist/formats/plain.py] and the window (0, 1) over
    places of [src/abacist/models/]: the sum 12 + 34 = 46 is written <start>21+43=64<end>. *)

From Coq Require Import List Arith Bool.
From Formal Require Import Model.
Import ListNotations.

(** * Tokens *)

Inductive token := Digit (d : nat) | Plus | Equals | End | Start.

(** Ids of the vocabulary: the ten digits come first. *)
Definition id (t : token) : nat :=
  match t with Digit d => d | Plus => 10 | Equals => 11 | End => 12 | Start => 13 end.

(** * Places *)

(** The place of a token: units stand at place 1, tens at place 2, and [=] at place 0. The start
    token stands in every column, the operator in none. *)
Inductive place := Everywhere | Nowhere | At (p : nat).

(** The places of the tokens of a line, found from left to right. Columns are counted from the
    last operator or from [=]; [count] is the number of tokens since then. Every token after [=]
    belongs to the answer. *)
Fixpoint annotate (answering : bool) (count : nat) (line : list token) : list (token * place) :=
  match line with
  | [] => []
  | t :: rest =>
    match t, answering with
    | Start, false => (t, Everywhere) :: annotate false count rest
    | Plus, false => (t, Nowhere) :: annotate false 0 rest
    | Equals, false => (t, At 0) :: annotate true 0 rest
    | _, _ => (t, At (S count)) :: annotate answering (S count) rest
    end
  end.

(** * Visibility *)

(** The bucket of a pair of places: the difference where both are numbers, and one for all others. *)
Definition bucket (query key : place) : nat :=
  match query, key with
  | At p, At p' => p' - p
  | _, _ => 2
  end.

(** Whether a query sees an earlier key: one of its own column or of the next, or the start token. *)
Definition sees (query key : place) : bool :=
  match query, key with
  | _, Everywhere => true
  | At p, At p' => (p' =? p) || (p' =? S p)
  | _, _ => false
  end.

Definition visible (p : place) (earlier : list (token * place)) : list (nat * nat) :=
  map (fun '(t, p') => (id t, bucket p p')) (filter (fun '(_, p') => sees p p') earlier).

(** * Logits *)

(** The logits after a line, where [forward] is a model's function of the last token and of what
    that token sees. A token always sees itself. *)
Definition logits {A} (forward : nat -> list (nat * nat) -> list A) (line : list token) : list A :=
  match rev (annotate false 0 line) with
  | [] => []
  | (t, p) :: earlier => forward (id t) (visible p (rev earlier) ++ [(id t, bucket p p)])
  end.

(** The prompt of a sum: the operands are written least significant digit first. *)
Definition prompt (a b : list nat) : list token :=
  Start :: map Digit a ++ Plus :: map Digit b ++ [Equals].
