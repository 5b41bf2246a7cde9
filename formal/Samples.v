(** The function of the theorem is the one that the package computes.

    Weights.v holds a few lines with the logits that the package computed for them in float64. Here
    they are shown to be within a millionth of those of [transformer]. This is a test of Model.v and
    Line.v, not a proof about PyTorch, and the theorem does not use it. *)

From Coq Require Import List Bool Reals ZArith Lra.
From Formal Require Import Model Line Weights Intervals Check.
Import ListNotations.

(** The number is within 1,000 billionths of [n] billionths. *)
Definition near (n : Z) (x : R) : Prop :=
  (IZR (n - 1000) / IZR (10 ^ 9) < x < IZR (n + 1000) / IZR (10 ^ 9))%R.

Definition near_check (n : Z) (i : I.type) : bool :=
  exceeds i (ratio interval_arithmetic (n - 1000) (10 ^ 9)) &&
  exceeds (ratio interval_arithmetic (n + 1000) (10 ^ 9)) i.

Fixpoint all2 {A B} (test : A -> B -> bool) (l : list A) (m : list B) : bool :=
  match l, m with
  | [], [] => true
  | a :: l', b :: m' => test a b && all2 test l' m'
  | _, _ => false
  end.

Definition check_samples (w : weights dyadic) (samples : list (list token * list Z)) : bool :=
  let forward := forward interval_arithmetic (load interval_arithmetic w) in
  forallb (fun '(line, expected) => all2 near_check expected (logits forward line)) samples.

Lemma near_sound n i x : encloses i x -> near_check n i = true -> near n x.
Proof.
  intros H Hn. apply andb_prop in Hn. destruct Hn as [Hl Hu].
  split; [exact (exceeds_sound _ _ _ _ H (ratio_encloses _ _) Hl) |].
  exact (exceeds_sound _ _ _ _ (ratio_encloses _ _) H Hu).
Qed.

Lemma all_near_sound expected l m :
  enclose_vector l m -> all2 near_check expected l = true -> Forall2 near expected m.
Proof.
  intros H. revert expected. induction H as [| i x l m Hi _ IH]; intros [| n expected] Hc;
    try discriminate; constructor; apply andb_prop in Hc; destruct Hc as [Hn Hr].
  - exact (near_sound _ _ _ Hi Hn).
  - exact (IH _ Hr).
Qed.

Lemma check_samples_sound w samples : check_samples w samples = true ->
  forall line expected, In (line, expected) samples ->
  Forall2 near expected (logits (forward real_arithmetic (load real_arithmetic w)) line).
Proof.
  intros Hc line expected H. unfold check_samples in Hc. rewrite forallb_forall in Hc.
  refine (all_near_sound _ _ _ _ (Hc _ H)). unfold logits.
  destruct (rev (annotate false 0 line)) as [| [t p] earlier]; [constructor |].
  apply forward_encloses.
Qed.

Lemma samples_pass : check_samples trained samples = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem transformer_agrees_with_the_package :
  forall line expected, In (line, expected) samples -> Forall2 near expected (transformer line).
Proof. exact (check_samples_sound trained samples samples_pass). Qed.
