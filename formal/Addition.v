(** Digits and numbers, and addition column by column.

    Numbers are lists of digits, least significant first. *)

From Coq Require Import List Arith Lia.
Import ListNotations.

(** * Digits and numbers *)

(** The number that digits stand for. *)
Fixpoint value (digits : list nat) : nat :=
  match digits with [] => 0 | d :: rest => d + 10 * value rest end.

(** The digits of a number: at least one, and no leading zero, unless the number is 0. *)
Definition numeral (digits : list nat) : Prop :=
  digits <> [] /\ Forall (fun d => d < 10) digits /\ (last digits 0 = 0 -> digits = [0]).

Lemma value_app l m : value (l ++ m) = value l + 10 ^ length l * value m.
Proof. induction l; simpl; [lia |]. rewrite IHl. ring. Qed.

Lemma value_positive l : last l 0 <> 0 -> 0 < value l.
Proof.
  induction l as [| d [| e l] IH]; simpl; [lia | lia |]. intros H. specialize (IH H).
  simpl in IH. lia.
Qed.


Lemma last_cons (d e : nat) l : l <> [] -> last (d :: l) e = last l e.
Proof. destruct l; [contradiction | reflexivity]. Qed.

Lemma numeral_tail d l : numeral (d :: l) -> l <> [] -> numeral l /\ 0 < value l.
Proof.
  intros (_ & Hd & H0) Hl. rewrite last_cons in H0 by exact Hl.
  assert (Hn : last l 0 <> 0) by (intros H; specialize (H0 H); congruence).
  inversion Hd; subst. repeat split; try assumption.
  - intros H. contradiction.
  - apply value_positive. exact Hn.
Qed.

(** A number has one numeral. *)
Lemma numeral_unique l m : numeral l -> numeral m -> value l = value m -> l = m.
Proof.
  revert m. induction l as [| d l IH]; intros [| e m] Hl Hm H.
  - reflexivity.
  - destruct Hl; contradiction.
  - destruct Hm; contradiction.
  - assert (Hd : d < 10) by (destruct Hl as (_ & F & _); inversion F; assumption).
    assert (He : e < 10) by (destruct Hm as (_ & F & _); inversion F; assumption).
    simpl in H. assert (d = e /\ value l = value m) as [-> Hv] by lia. f_equal.
    destruct l as [| d' l], m as [| e' m]; [reflexivity | | |].
    + destruct (numeral_tail _ _ Hm); [discriminate | simpl in *; lia].
    + destruct (numeral_tail _ _ Hl); [discriminate | simpl in *; lia].
    + apply IH; [apply (numeral_tail _ _ Hl) | apply (numeral_tail _ _ Hm) | exact Hv];
        discriminate.
Qed.

(** Every number has a numeral. *)
Lemma numeral_exists n : exists l, numeral l /\ value l = n.
Proof.
  induction n as [n IH] using lt_wf_ind.
  destruct (le_lt_dec 10 n) as [Hn | Hn].
  - assert (Hd := Nat.div_mod_eq n 10).
    assert (Hless : n / 10 < n) by (apply Nat.div_lt; lia).
    assert (Hmore : 1 <= n / 10) by (apply Nat.div_le_lower_bound; lia).
    destruct (IH (n / 10)) as (l & (Hl & Fl & Zl) & Vl); [assumption |].
    exists (n mod 10 :: l). split; [split; [discriminate | split] |].
    + constructor; [apply Nat.mod_upper_bound; lia | exact Fl].
    + rewrite last_cons by exact Hl. intros H0. rewrite (Zl H0) in Vl. cbn [value] in Vl. lia.
    + cbn [value]. lia.
  - exists [n]. split; [| simpl; lia]. split; [discriminate | split].
    + constructor; [exact Hn | constructor].
    + simpl. congruence.
Qed.

(** * Addition *)

Section Columns.
Variables a b : list nat.

(** The digits of column [i], counted from 0; beyond its last digit a number goes on with zeros. *)
Definition column (i : nat) : nat := nth i a 0 + nth i b 0.

(** The carry into a column. *)
Fixpoint carry (i : nat) : nat :=
  match i with 0 => 0 | S i' => (column i' + carry i') / 10 end.

Definition digit (i : nat) : nat := (column i + carry i) mod 10.

Definition columns : nat := Nat.max (length a) (length b).

(** The sum, written as on paper: a digit for every column, and the last carry if there is one. *)
Definition add_columns : list nat :=
  map digit (seq 0 columns) ++ (if carry columns =? 0 then [] else [1]).

Hypothesis numeral_a : numeral a.
Hypothesis numeral_b : numeral b.

Lemma digit_below_10 l i : Forall (fun d => d < 10) l -> nth i l 0 < 10.
Proof.
  intros H. destruct (nth_in_or_default i l 0) as [Hi | ->]; [| lia].
  rewrite Forall_forall in H. exact (H _ Hi).
Qed.

Lemma column_bound i : column i < 19.
Proof.
  destruct numeral_a as (_ & Fa & _), numeral_b as (_ & Fb & _). unfold column.
  assert (Ha := digit_below_10 a i Fa). assert (Hb := digit_below_10 b i Fb). lia.
Qed.

Lemma carry_bound i : carry i < 2.
Proof.
  induction i; cbn [carry]; [lia |]. assert (H := column_bound i).
  apply Nat.div_lt_upper_bound; lia.
Qed.

Lemma value_of_columns l n : length l <= n -> value (map (fun i => nth i l 0) (seq 0 n)) = value l.
Proof.
  revert l. induction n as [| n IH]; intros l H.
  - destruct l; [reflexivity | simpl in H; lia].
  - cbn [seq map]. rewrite <- seq_shift, map_map. destruct l as [| d l].
    + assert (H0 := IH [] (Nat.le_0_l _)). cbn [value nth]. change (value []) with 0 in H0.
      rewrite (map_ext _ (fun i => nth i [] 0)) by (intros []; reflexivity). lia.
    + cbn [nth value]. rewrite IH; [reflexivity | simpl in H; lia].
Qed.

(** Column by column: the digits so far and the carry are worth as much as the operands so far. *)
Lemma value_of_digits n :
  value (map digit (seq 0 n)) + 10 ^ n * carry n =
  value (map (fun i => nth i a 0) (seq 0 n)) + value (map (fun i => nth i b 0) (seq 0 n)).
Proof.
  induction n as [| n IH]; [reflexivity |].
  rewrite seq_S, !map_app, !value_app, !map_length, !seq_length.
  cbn [map value plus]. cbn [carry]. unfold digit at 2.
  assert (H := Nat.div_mod_eq (column n + carry n) 10). unfold column in *.
  set (x := (nth n a 0 + nth n b 0 + carry n) / 10) in *.
  set (y := (nth n a 0 + nth n b 0 + carry n) mod 10) in *.
  rewrite Nat.pow_succ_r'. nia.
Qed.

Theorem add_columns_value : value add_columns = value a + value b.
Proof.
  unfold add_columns. rewrite value_app, map_length, seq_length.
  assert (H := value_of_digits columns). rewrite !value_of_columns in H; unfold columns; try lia.
  fold columns. assert (Hc := carry_bound columns).
  destruct (Nat.eqb_spec (carry columns) 0) as [E | E]; cbn [value]; [lia |].
  replace (carry columns) with 1 in * by lia. lia.
Qed.

Lemma last_digit l : numeral l -> length l <= 1 \/ nth (pred (length l)) l 0 <> 0.
Proof.
  intros (H & _ & Z). destruct (le_lt_dec (length l) 1) as [E | E]; [left; exact E | right].
  intros H0. assert (last l 0 = nth (pred (length l)) l 0) as L.
  { clear. induction l as [| d [| e l] IH]; [reflexivity | reflexivity |]. exact IH. }
  rewrite <- L in H0. rewrite (Z H0) in E. simpl in E. lia.
Qed.

Theorem add_columns_numeral : numeral add_columns.
Proof.
  assert (Ha := proj1 numeral_a). assert (Hb := proj1 numeral_b).
  assert (Hn : 1 <= columns)
    by (unfold columns; rewrite <- length_zero_iff_nil in Ha; lia).
  split; [| split].
  - unfold add_columns. destruct columns; [lia | discriminate].
  - apply Forall_app. split.
    + apply Forall_map, Forall_forall. intros i _. unfold digit. apply Nat.mod_upper_bound. lia.
    + destruct (carry columns =? 0); repeat constructor.
  - unfold add_columns. destruct (Nat.eqb_spec (carry columns) 0) as [E | E].
    + rewrite app_nil_r. destruct columns as [| n] eqn:En; [lia |].
      rewrite seq_S, map_app. cbn [map plus]. rewrite last_last. intros H0.
      assert (Hz : column n + carry n = 0).
      { cbn [carry] in E. unfold digit in H0.
        rewrite (Nat.div_mod_eq (column n + carry n) 10), E, H0. reflexivity. }
      assert (n = 0) as ->; [| simpl; rewrite H0; reflexivity].
      unfold column in Hz.
      assert (nth n a 0 = 0 /\ nth n b 0 = 0) as [Za Zb] by lia.
      unfold columns in En.
      destruct (last_digit _ numeral_a) as [La | La], (last_digit _ numeral_b) as [Lb | Lb];
        destruct (Nat.max_spec (length a) (length b)) as [[? M] | [? M]];
        rewrite M in En; rewrite ?En in *; cbn [pred] in *; lia || congruence.
    + rewrite last_last. discriminate.
Qed.

End Columns.

(** The sum of two numbers, in digits. *)
Theorem add_columns_is_the_sum a b s :
  numeral a -> numeral b -> numeral s -> value s = value a + value b -> s = add_columns a b.
Proof.
  intros Ha Hb Hs H. apply numeral_unique; [exact Hs | apply add_columns_numeral; assumption |].
  rewrite H. symmetry. apply add_columns_value; assumption.
Qed.
