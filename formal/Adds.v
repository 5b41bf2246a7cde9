(** The theorem: the transformer adds numbers of every length. *)

From Coq Require Import List Arith Lia Reals.
From Formal Require Import Model Line Neighbourhoods Addition Visible Check.
Import ListNotations.

(** After the prompt of a sum and its first [k] digits, the largest logit is that of the next token:
    the next digit, or <end> after the last one. *)
Theorem transformer_adds : forall a b s,
  numeral a -> numeral b -> numeral s -> value s = value a + value b ->
  forall k, k <= length s ->
  strictly_largest
    (transformer (prompt a b ++ map Digit (firstn k s)))
    (id (nth k (map Digit s ++ [End]) End)).
Proof.
  intros a b s Ha Hb Hs Hv k Hk.
  assert (s = add_columns a b) as -> by (apply add_columns_is_the_sum; assumption).
  unfold transformer. rewrite logits_of_case, <- case_is_followed by assumption.
  apply every_neighbourhood_is_right, case_is_listed; assumption.
Qed.

(** * Greedy decoding *)

Definition vocabulary : list token := map Digit (seq 0 10) ++ [Plus; Equals; End; Start].

(** [greedy line answer]: greedy decoding, which appends the token with the largest logit until that
    is <end>, continues [line] with [answer]. *)
Inductive greedy : list token -> list token -> Prop :=
  | stop line :
      strictly_largest (transformer line) (id End) -> greedy line [End]
  | append line t rest :
      In t vocabulary -> t <> End -> strictly_largest (transformer line) (id t) ->
      greedy (line ++ [t]) rest -> greedy line (t :: rest).

Lemma strictly_largest_unique l i j : strictly_largest l i -> strictly_largest l j -> i = j.
Proof.
  intros [Hi Li] [Hj Lj]. destruct (Nat.eq_dec i j) as [E | E]; [exact E | exfalso].
  exact (Rlt_asym _ _ (Li j Hj (not_eq_sym E)) (Lj i Hi E)).
Qed.

(** Tokens stand in the vocabulary at their ids. *)
Lemma id_injective t t' : In t vocabulary -> In t' vocabulary -> id t = id t' -> t = t'.
Proof.
  assert (H : Forall (fun t => nth (id t) vocabulary End = t) vocabulary)
    by (repeat constructor).
  rewrite Forall_forall in H. intros Ht Ht' E. rewrite <- (H t Ht), <- (H t' Ht'), E. reflexivity.
Qed.

Lemma greedy_unique line x y : greedy line x -> greedy line y -> x = y.
Proof.
  assert (He : In End vocabulary) by (apply in_or_app; right; simpl; auto).
  intros H. revert y. induction H as [line H | line t rest Ht Hne H _ IH]; intros y Hy;
    inversion Hy as [line' H' | line' t' rest' Ht' Hne' H' Hr]; subst.
  - reflexivity.
  - destruct Hne'. apply id_injective; try assumption.
    exact (strictly_largest_unique _ _ _ H' H).
  - destruct Hne. apply id_injective; try assumption.
    exact (strictly_largest_unique _ _ _ H H').
  - assert (t = t') as ->
      by (apply id_injective; try assumption; exact (strictly_largest_unique _ _ _ H H')).
    f_equal. apply IH. exact Hr.
Qed.

(** For all numbers, greedy decoding writes the digits of their sum and <end>, and nothing else. *)
Corollary greedy_decoding_adds : forall a b, numeral a -> numeral b ->
  exists s, numeral s /\ value s = value a + value b /\
  forall answer, greedy (prompt a b) answer <-> answer = map Digit s ++ [End].
Proof.
  intros a b Ha Hb. destruct (numeral_exists (value a + value b)) as (s & Hs & Hv).
  exists s. split; [exact Hs | split; [exact Hv |]].
  assert (Hg : greedy (prompt a b) (map Digit s ++ [End])).
  { assert (H := transformer_adds a b s Ha Hb Hs Hv).
    (* by induction on the number of digits still to be written *)
    enough (Hk : forall n k, n + k = length s ->
      greedy (prompt a b ++ map Digit (firstn k s)) (map Digit (skipn k s) ++ [End])).
    { specialize (Hk (length s) 0 (Nat.add_0_r _)). simpl in Hk. rewrite app_nil_r in Hk. exact Hk. }
    induction n as [| n IH]; intros k Hk.
    - simpl in Hk. subst k. specialize (H (length s) (Nat.le_refl _)).
      rewrite app_nth2, map_length, Nat.sub_diag in H by (rewrite map_length; lia).
      rewrite skipn_all. apply stop. exact H.
    - assert (Hlt : k < length s) by lia. specialize (H k (Nat.lt_le_incl _ _ Hlt)).
      rewrite app_nth1, nth_indep with (d' := Digit 0), map_nth in H by (rewrite map_length; lia).
      assert (E : skipn k s = nth k s 0 :: skipn (S k) s).
      { clear - Hlt. revert k Hlt. induction s as [| d s IH]; intros k Hlt; [simpl in Hlt; lia |].
        destruct k; [reflexivity |]. simpl in Hlt. apply IH. lia. }
      rewrite E. cbn [map app]. apply append; [| discriminate | exact H |].
      + apply in_or_app. left. apply in_map, digits_complete, digit_below_10. apply Hs.
      + specialize (IH (S k)). rewrite firstn_succ, map_app, app_assoc in IH by exact Hlt.
        apply IH. lia. }
  intros answer. split; [| intros ->; exact Hg].
  intros H. exact (greedy_unique _ _ _ H Hg).
Qed.
