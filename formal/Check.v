(** The finite check: one boolean function, run once.

    [check] runs the forward pass in interval arithmetic for every neighbourhood and compares the
    logit of the token that has to follow with all others. This file fails to compile where a weight
    makes the model wrong. *)

From Coq Require Import List Arith Bool Reals ZArith Lra Lia.
From Interval Require Import Real.Xreal Float.Basic.
From Formal Require Import Model Line Weights Neighbourhoods Intervals.
Import ListNotations.

(** * What is checked *)

(** The logits after a line, as real numbers: the function that the theorem speaks of. *)
Definition transformer : list token -> list R :=
  logits (forward real_arithmetic (load real_arithmetic trained)).

(** The logit at index [t] is greater than every other one. *)
Definition strictly_largest (l : list R) (t : nat) : Prop :=
  t < length l /\ forall j, j < length l -> j <> t -> (nth j l 0 < nth t l 0)%R.

(** * The check *)

Definition exceeds (a b : I.type) : bool :=
  match I.sign_strict (I.sub precision a b) with Xgt => true | _ => false end.

Definition largest (l : list I.type) (t : nat) : bool :=
  (t <? length l) &&
  forallb (fun j => (j =? t) || exceeds (nth t l (zero interval_arithmetic))
                                        (nth j l (zero interval_arithmetic)))
    (seq 0 (length l)).

Definition check (w : weights dyadic) (cases : list case) : bool :=
  let logits := forward interval_arithmetic (load interval_arithmetic w) in
  forallb (fun c => largest (logits (query_of c) (seen c)) (id (follows c))) cases.

(** * The check is sound *)

Lemma exceeds_sound a b x y : encloses a x -> encloses b y -> exceeds a b = true -> (y < x)%R.
Proof.
  intros Ha Hb. unfold exceeds.
  assert (Hs := I.sub_correct precision a b (Xreal x) (Xreal y) Ha Hb).
  generalize (I.sign_strict_correct (I.sub precision a b)).
  destruct (I.sign_strict (I.sub precision a b)); try discriminate.
  intros H _. specialize (H _ Hs). simpl in H. destruct H as [_ H]. lra.
Qed.

Lemma largest_sound l m t : enclose_vector l m -> largest l t = true -> strictly_largest m t.
Proof.
  intros H Hl. apply andb_prop in Hl. destruct Hl as [Ht Hj].
  rewrite (length_related _ _ _ H) in Ht, Hj. apply Nat.ltb_lt in Ht. split; [exact Ht |].
  intros j Hlt Hne. rewrite forallb_forall in Hj. specialize (Hj j).
  rewrite in_seq in Hj. specialize (Hj (conj (Nat.le_0_l _) Hlt)).
  apply orb_prop in Hj. destruct Hj as [Hj | Hj]; [apply Nat.eqb_eq in Hj; contradiction |].
  assert (He : forall i, encloses (nth i l (zero interval_arithmetic)) (nth i m 0%R)).
  { intros i. apply nth_related; [exact H |].
    replace 0%R with (zero real_arithmetic); [exact zero_encloses |].
    unfold zero. simpl. field. }
  exact (exceeds_sound _ _ _ _ (He t) (He j) Hj).
Qed.

Theorem check_sound w cases : check w cases = true ->
  forall c, In c cases ->
  strictly_largest (forward real_arithmetic (load real_arithmetic w) (query_of c) (seen c))
                   (id (follows c)).
Proof.
  intros H c Hc. unfold check in H. rewrite forallb_forall in H.
  exact (largest_sound _ _ _ (forward_encloses w _ _) (H c Hc)).
Qed.

(** * The check is passed *)

Lemma trained_weights_pass : check trained cases = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem every_neighbourhood_is_right : forall c, In c cases ->
  strictly_largest
    (forward real_arithmetic (load real_arithmetic trained) (query_of c) (seen c))
    (id (follows c)).
Proof. exact (check_sound trained cases trained_weights_pass). Qed.
