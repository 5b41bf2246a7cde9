(** What the last token of a right line sees is one of the listed neighbourhoods. *)

From Coq Require Import List Arith Bool Lia.
From Formal Require Import Line Neighbourhoods Addition.
Import ListNotations.

(** * The places of a sum *)

(** Digits with their places, from place [p] on. *)
Fixpoint places (p : nat) (digits : list nat) : list (token * place) :=
  match digits with [] => [] | d :: rest => (Digit d, At p) :: places (S p) rest end.

Lemma places_app p l m : places p (l ++ m) = places p l ++ places (p + length l) m.
Proof.
  revert p. induction l as [| d l IH]; intros p; simpl.
  - rewrite Nat.add_0_r. reflexivity.
  - rewrite IH, Nat.add_succ_comm. reflexivity.
Qed.

Lemma annotate_digits answering count l rest :
  annotate answering count (map Digit l ++ rest) =
  places (S count) l ++ annotate answering (count + length l) rest.
Proof.
  revert count. induction l as [| d l IH]; intros count; simpl.
  - rewrite Nat.add_0_r. reflexivity.
  - rewrite IH, Nat.add_succ_comm. reflexivity.
Qed.

Definition annotated_prompt (a b : list nat) : list (token * place) :=
  (Start, Everywhere) :: places 1 a ++ (Plus, Nowhere) :: places 1 b.

Lemma annotate_line a b s :
  annotate false 0 (prompt a b ++ map Digit s) =
  annotated_prompt a b ++ (Equals, At 0) :: places 1 s.
Proof.
  unfold prompt, annotated_prompt. cbn [annotate app]. f_equal.
  rewrite <- !app_assoc. rewrite annotate_digits. cbn [annotate app]. f_equal. f_equal.
  rewrite <- app_assoc, annotate_digits. cbn [annotate app]. f_equal. f_equal.
  rewrite <- (app_nil_r (map Digit s)), annotate_digits. cbn [annotate]. apply app_nil_r.
Qed.

Lemma logits_at_last {A} (forward : nat -> list (nat * nat) -> list A) line earlier t p :
  annotate false 0 line = earlier ++ [(t, p)] ->
  logits forward line = forward (id t) (visible p earlier ++ [(id t, bucket p p)]).
Proof. intros H. unfold logits. rewrite H, rev_app_distr. simpl. rewrite rev_involutive. reflexivity. Qed.

(** * Which digits are seen *)

Lemma visible_app p l m : visible p (l ++ m) = visible p l ++ visible p m.
Proof. unfold visible. rewrite filter_app, map_app. reflexivity. Qed.

Lemma visible_cons p x l : visible p (x :: l) = visible p [x] ++ visible p l.
Proof. exact (visible_app p [x] l). Qed.

(** A token does not see digits beyond the next column, or before its own. *)
Lemma visible_beyond p q l : S p < q -> visible (At p) (places q l) = [].
Proof.
  revert q. induction l as [| d l IH]; intros q H; [reflexivity |].
  unfold visible. cbn [places filter sees].
  destruct (Nat.eqb_spec q p), (Nat.eqb_spec q (S p)); try lia.
  apply IH. lia.
Qed.

Lemma visible_before p q l : q + length l <= p -> visible (At p) (places q l) = [].
Proof.
  revert q. induction l as [| d l IH]; intros q H; [reflexivity |].
  cbn [length] in H. unfold visible. cbn [places filter sees].
  destruct (Nat.eqb_spec q p), (Nat.eqb_spec q (S p)); try lia.
  apply IH. lia.
Qed.

Lemma visible_next p l :
  visible (At p) (places (S p) l) = seen_digit 1 (nth_error l 0).
Proof.
  destruct l as [| d l]; [reflexivity |].
  cbn [places]. rewrite visible_cons, visible_beyond by lia.
  unfold visible. cbn [filter sees map]. rewrite Nat.eqb_refl, orb_true_r.
  cbn [map app bucket nth_error seen_digit id]. replace (S p - p) with 1 by lia. reflexivity.
Qed.

(** A token at place [q + i] sees the digits at this place and the next. *)
Lemma visible_columns q i l :
  visible (At (q + i)) (places q l) =
  seen_digit 0 (nth_error l i) ++ seen_digit 1 (nth_error l (S i)).
Proof.
  revert q i. induction l as [| d l IH]; intros q i; [destruct i; reflexivity |].
  cbn [places]. rewrite visible_cons. destruct i as [| i].
  - rewrite Nat.add_0_r, visible_next. cbn [nth_error seen_digit]. f_equal.
    unfold visible. cbn [filter sees map]. rewrite Nat.eqb_refl.
    cbn [orb map bucket id]. rewrite Nat.sub_diag. reflexivity.
  - rewrite Nat.add_succ_r. change (S (q + i)) with (S q + i). rewrite IH.
    unfold visible. cbn [filter sees map].
    destruct (Nat.eqb_spec q (S q + i)), (Nat.eqb_spec q (S (S q + i))); try lia. reflexivity.
Qed.

Lemma visible_prompt_at_equals a b :
  visible (At 0) (annotated_prompt a b) =
  (id Start, 2) :: seen_digit 1 (nth_error a 0) ++ seen_digit 1 (nth_error b 0).
Proof.
  unfold annotated_prompt. rewrite visible_cons, visible_app, (visible_cons _ (Plus, Nowhere)).
  rewrite !visible_next. reflexivity.
Qed.

Lemma visible_prompt_at_digit a b i :
  visible (At (S i)) (annotated_prompt a b) =
  (id Start, 2) ::
  (seen_digit 0 (nth_error a i) ++ seen_digit 1 (nth_error a (S i))) ++
  (seen_digit 0 (nth_error b i) ++ seen_digit 1 (nth_error b (S i))).
Proof.
  unfold annotated_prompt. rewrite visible_cons, visible_app, (visible_cons _ (Plus, Nowhere)).
  change (S i) with (1 + i). rewrite !visible_columns. reflexivity.
Qed.

(** * The neighbourhood of every answer position *)

Definition operand_at (l : list nat) (i : nat) : operand :=
  match nth_error l i, nth_error l (S i) with
  | Some d, Some e => GoesOn d e
  | Some d, None => Ends d
  | None, _ => Ended
  end.

(** The neighbourhood after [k] digits of the answer. *)
Definition case_at (a b : list nat) (k : nat) : case :=
  match k with
  | 0 => Beginning (nth 0 a 0) (nth 0 b 0)
  | S i => Column (operand_at a i) (operand_at b i) (carry a b i)
  end.

Lemma own_operand l i : own (operand_at l i) = nth_error l i.
Proof. unfold operand_at. destruct (nth_error l i), (nth_error l (S i)); reflexivity. Qed.

Lemma next_operand l i : next (operand_at l i) = nth_error l (S i).
Proof.
  unfold operand_at. destruct (nth_error l i) eqn:E, (nth_error l (S i)) eqn:E'; try reflexivity.
  apply nth_error_None in E. assert (H : nth_error l (S i) <> None) by congruence.
  apply nth_error_Some in H. lia.
Qed.

Lemma worth_nth_error l i : worth (nth_error l i) = nth i l 0.
Proof. revert i. induction l; intros [| i]; simpl; auto. Qed.

Section Sum.
Variables a b : list nat.
Hypothesis numeral_a : numeral a.
Hypothesis numeral_b : numeral b.
Let s := add_columns a b.

Lemma column_sum_at i :
  column_sum (operand_at a i) (operand_at b i) (carry a b i) = column a b i + carry a b i.
Proof. unfold column_sum, column. rewrite !own_operand, !worth_nth_error. reflexivity. Qed.

Lemma column_beyond i : columns a b <= i -> column a b i = 0.
Proof. unfold columns, column. intros H. rewrite !nth_overflow by lia. reflexivity. Qed.

Lemma length_sum :
  length s = columns a b + (if carry a b (columns a b) =? 0 then 0 else 1).
Proof.
  unfold s, add_columns. rewrite app_length, map_length, seq_length.
  destruct (_ =? 0); reflexivity.
Qed.

Lemma nth_sum i : i < length s -> nth i s 0 = digit a b i.
Proof.
  rewrite length_sum. intros H. unfold s, add_columns.
  destruct (le_lt_dec (columns a b) i) as [Hi | Hi].
  - rewrite app_nth2; rewrite map_length, seq_length; [| exact Hi].
    destruct (Nat.eqb_spec (carry a b (columns a b)) 0) as [E | E]; [lia |].
    assert (i = columns a b) as -> by lia. rewrite Nat.sub_diag.
    assert (Hc := carry_bound a b numeral_a numeral_b (columns a b)).
    unfold digit. rewrite column_beyond by lia.
    replace (carry a b (columns a b)) with 1 by lia. reflexivity.
  - rewrite app_nth1 by (rewrite map_length, seq_length; exact Hi).
    rewrite nth_indep with (d' := digit a b 0) by (rewrite map_length, seq_length; exact Hi).
    rewrite map_nth, seq_nth by exact Hi. reflexivity.
Qed.

Lemma firstn_succ (l : list nat) i : i < length l -> firstn (S i) l = firstn i l ++ [nth i l 0].
Proof.
  revert i. induction l as [| d l IH]; intros i H; [simpl in H; lia |].
  destruct i as [| i]; [reflexivity |]. simpl in H. cbn [firstn nth app].
  rewrite <- IH by lia. reflexivity.
Qed.

(** What is seen. *)
Lemma logits_of_case {A} (forward : nat -> list (nat * nat) -> list A) k :
  k <= length s ->
  logits forward (prompt a b ++ map Digit (firstn k s)) =
  forward (query_of (case_at a b k)) (seen (case_at a b k)).
Proof.
  intros Hk. destruct k as [| i].
  - rewrite (logits_at_last _ _ (annotated_prompt a b) Equals (At 0)) by apply annotate_line.
    rewrite visible_prompt_at_equals. f_equal. unfold seen, case_at.
    destruct a as [| x a'], b as [| y b'];
      [destruct (proj1 numeral_a) | destruct (proj1 numeral_a) | destruct (proj1 numeral_b) |];
      reflexivity.
  - assert (Hw : written (operand_at a i) (operand_at b i) (carry a b i) = nth i s 0).
    { unfold written. rewrite column_sum_at. symmetry. apply nth_sum. exact Hk. }
    rewrite (logits_at_last _ _
      (annotated_prompt a b ++ (Equals, At 0) :: places 1 (firstn i s))
      (Digit (nth i s 0)) (At (S i))).
    + rewrite visible_app, visible_prompt_at_digit, visible_cons, visible_before
        by (rewrite firstn_length; lia).
      unfold case_at, query_of, seen. rewrite Hw. f_equal.
      rewrite !own_operand, !next_operand. cbn [bucket id]. rewrite Nat.sub_diag.
      cbn. rewrite !app_nil_r, <- !app_assoc. reflexivity.
    + rewrite annotate_line, firstn_succ, places_app by exact Hk.
      rewrite firstn_length, Nat.min_l by lia. cbn [places plus].
      rewrite <- app_assoc. reflexivity.
Qed.

(** What has to follow. *)
Lemma case_is_followed k :
  k <= length s -> follows (case_at a b k) = nth k (map Digit s ++ [End]) End.
Proof.
  intros Hk.
  assert (Hs : k < length s -> nth k (map Digit s ++ [End]) End = Digit (digit a b k)).
  { intros H. rewrite app_nth1 by (rewrite map_length; exact H).
    rewrite nth_indep with (d' := Digit 0) by (rewrite map_length; exact H).
    rewrite map_nth, nth_sum by exact H. reflexivity. }
  assert (Hend : k = length s -> nth k (map Digit s ++ [End]) End = End).
  { intros ->. rewrite app_nth2 by (rewrite map_length; lia).
    rewrite map_length, Nat.sub_diag. reflexivity. }
  assert (Hn := length_sum). destruct k as [| i].
  - rewrite Hs.
    + unfold digit, column. cbn [case_at follows carry]. rewrite Nat.add_0_r. reflexivity.
    + assert (Ha := proj1 numeral_a). rewrite <- length_zero_iff_nil in Ha.
      unfold columns in Hn. lia.
  - cbn [case_at follows]. rewrite !next_operand. unfold carry_out. rewrite column_sum_at.
    change ((column a b i + carry a b i) / 10) with (carry a b (S i)).
    assert (Hc := carry_bound a b numeral_a numeral_b (S i)).
    destruct (le_lt_dec (columns a b) (S i)) as [Hi | Hi].
    + (* above both operands *)
      assert (Ea : nth_error a (S i) = None) by (apply nth_error_None; unfold columns in Hi; lia).
      assert (Eb : nth_error b (S i) = None) by (apply nth_error_None; unfold columns in Hi; lia).
      rewrite Ea, Eb. destruct (Nat.eqb_spec (carry a b (S i)) 0) as [E | E].
      * symmetry. apply Hend. destruct (le_lt_dec (columns a b) i) as [Hi' | Hi'].
        -- destruct (Nat.eqb_spec (carry a b (columns a b)) 0); lia.
        -- replace (columns a b) with (S i) in * by lia. rewrite E in Hn. cbn in Hn. lia.
      * destruct (le_lt_dec (columns a b) i) as [Hi' | Hi'].
        -- exfalso. apply E. cbn [carry]. rewrite column_beyond by exact Hi'.
           assert (H := carry_bound a b numeral_a numeral_b i). apply Nat.div_small. lia.
        -- assert (Hcol : columns a b = S i) by lia.
           rewrite Hcol in Hn. destruct (Nat.eqb_spec (carry a b (S i)) 0); [contradiction |].
           rewrite Hs by lia. unfold digit. rewrite column_beyond by lia.
           replace (carry a b (S i)) with 1 by lia. reflexivity.
    + (* at least one operand goes on *)
      rewrite Hs by lia. unfold digit, column.
      rewrite <- (worth_nth_error a), <- (worth_nth_error b).
      destruct (nth_error a (S i)) eqn:Ea, (nth_error b (S i)) eqn:Eb; try reflexivity.
      apply nth_error_None in Ea, Eb. unfold columns in Hi. lia.
Qed.

(** It is listed. *)
Lemma digits_complete d : d < 10 -> In d digits.
Proof. intros H. apply in_seq. lia. Qed.

Lemma digit_of_numeral l i d : numeral l -> nth_error l i = Some d -> d < 10.
Proof.
  intros (_ & F & _) H. rewrite Forall_forall in F. apply F. exact (nth_error_In _ _ H).
Qed.

Lemma operands_complete l i : numeral l -> In (operand_at l i) operands.
Proof.
  intros H. unfold operands, operand_at.
  destruct (nth_error l i) eqn:E; [right | left; reflexivity].
  apply in_or_app. destruct (nth_error l (S i)) eqn:E'; [right | left].
  - apply in_flat_map. exists n. split.
    + apply digits_complete. exact (digit_of_numeral _ _ _ H E).
    + apply in_map, digits_complete. exact (digit_of_numeral _ _ _ H E').
  - apply in_map, digits_complete. exact (digit_of_numeral _ _ _ H E).
Qed.

(** An operand that ends with a 0 is 0. *)
Lemma ends_with_0 l i : numeral l -> operand_at l i = Ends 0 -> i = 0.
Proof.
  unfold operand_at. intros Hl H.
  destruct (nth_error l i) eqn:E; [| discriminate].
  destruct (nth_error l (S i)) eqn:E'; [discriminate |]. injection H as ->.
  apply nth_error_None in E'. assert (Hi : nth_error l i <> None) by congruence.
  apply nth_error_Some in Hi. destruct (last_digit l Hl) as [H1 | H1]; [lia |].
  exfalso. apply H1. replace (pred (length l)) with i by lia. exact (nth_error_nth _ _ 0 E).
Qed.

Lemma operand_in_first_column l : numeral l -> operand_at l 0 <> Ended.
Proof.
  intros (H & _). destruct l as [| d [| e l]]; [contradiction | discriminate | discriminate].
Qed.

Lemma ended l i : operand_at l i = Ended -> length l <= i.
Proof.
  unfold operand_at. intros H. apply nth_error_None.
  destruct (nth_error l i); [destruct (nth_error l (S i)); discriminate | reflexivity].
Qed.

Lemma possible_at i :
  i < length s -> possible (operand_at a i) (operand_at b i) (carry a b i) = true.
Proof.
  intros Hi.
  assert (Za := ends_with_0 a i numeral_a). assert (Zb := ends_with_0 b i numeral_b).
  assert (Fa := operand_in_first_column a numeral_a).
  assert (Fb := operand_in_first_column b numeral_b).
  assert (Ea := ended a i). assert (Eb := ended b i).
  destruct (operand_at a i) as [| x | x x'] eqn:Oa, (operand_at b i) as [| y | y y'] eqn:Ob;
    try destruct x as [| x]; try destruct y as [| y]; try reflexivity;
    try (specialize (Za eq_refl); subst i; congruence || reflexivity);
    try (specialize (Zb eq_refl); subst i; congruence || reflexivity).
  (* Nothing stands above both operands but the last carry. *)
  specialize (Ea eq_refl). specialize (Eb eq_refl). rewrite length_sum in Hi.
  assert (columns a b <= i) by (unfold columns; lia).
  assert (Hc := carry_bound a b numeral_a numeral_b (columns a b)).
  destruct (Nat.eqb_spec (carry a b (columns a b)) 0) as [E | E]; [lia |].
  assert (i = columns a b) as -> by lia. apply Nat.eqb_eq. lia.
Qed.

Lemma case_is_listed k : k <= length s -> In (case_at a b k) cases.
Proof.
  intros Hk. unfold cases. apply in_or_app. destruct k as [| i]; [left | right].
  - destruct numeral_a as (_ & Da & _), numeral_b as (_ & Db & _).
    apply in_flat_map. exists (nth 0 a 0). split.
    + apply digits_complete, digit_below_10. exact Da.
    + apply (in_map (Beginning (nth 0 a 0))), digits_complete, digit_below_10. exact Db.
  - apply in_flat_map. exists (operand_at a i). split; [apply operands_complete; assumption |].
    apply in_flat_map. exists (operand_at b i). split; [apply operands_complete; assumption |].
    apply (in_map (Column (operand_at a i) (operand_at b i))), filter_In.
    split; [| apply possible_at; exact Hk].
    assert (H := carry_bound a b numeral_a numeral_b i).
    destruct (carry a b i) as [| [| c]]; [left | right; left | lia]; reflexivity.
Qed.

End Sum.
