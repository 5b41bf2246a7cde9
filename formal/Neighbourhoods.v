(** The finitely many neighbourhoods: everything that an answer token can depend on.

    The logits after [=], or after a digit of the answer, depend on what that token sees: the digits
    of its own column and of the next one, the start token, and itself. At most six tokens are seen,
    so there are finitely many cases: 24,518. This file lists them, each with the token that has to
    follow. *)

From Coq Require Import List Arith Bool NArith.
From Formal Require Import Line.
Import ListNotations.

(** One operand in a column and the next: it has ended before, ends here, or goes on. *)
Inductive operand := Ended | Ends (own : nat) | GoesOn (own next : nat).

Definition own (x : operand) : option nat :=
  match x with Ended => None | Ends d | GoesOn d _ => Some d end.
Definition next (x : operand) : option nat :=
  match x with GoesOn _ d => Some d | _ => None end.

(** The digit that an operand adds to a column: 0 where there is none. *)
Definition worth (d : option nat) : nat := match d with Some d => d | None => 0 end.

(** Either the answer is about to begin, and the digits of the first column are seen; or a digit of
    the answer has just been written, in a column with a carry of 0 or 1 coming in. *)
Inductive case := Beginning (a b : nat) | Column (a b : operand) (carry : nat).

(** A number of several digits does not end with a 0, so an operand that ends with 0 has no other
    digit and the column is the first: both operands have a digit and no carry comes in. Above both
    operands stands nothing but a last carry. *)
Definition possible (a b : operand) (carry : nat) : bool :=
  match a, b with
  | Ended, Ended => carry =? 1
  | Ended, Ends 0 | Ends 0, Ended => false
  | Ends 0, _ | _, Ends 0 => carry =? 0
  | _, _ => true
  end.

Definition digits : list nat := seq 0 10.
Definition operands : list operand :=
  Ended :: map Ends digits ++ flat_map (fun d => map (GoesOn d) digits) digits.

Definition cases : list case :=
  flat_map (fun a => map (Beginning a) digits) digits ++
  flat_map (fun a =>
    flat_map (fun b =>
      map (Column a b) (filter (possible a b) [0; 1])) operands) operands.

(** * What is seen *)

(** The digit written in a column, and the carry out of it. *)
Definition column_sum (a b : operand) (carry : nat) : nat := worth (own a) + worth (own b) + carry.
Definition written (a b : operand) (carry : nat) : nat := column_sum a b carry mod 10.
Definition carry_out (a b : operand) (carry : nat) : nat := column_sum a b carry / 10.

Definition seen_digit (bucket : nat) (d : option nat) : list (nat * nat) :=
  match d with Some d => [(d, bucket)] | None => [] end.

(** The last token's id. *)
Definition query_of (c : case) : nat :=
  match c with
  | Beginning _ _ => id Equals
  | Column a b carry => written a b carry
  end.

(** The ids of the tokens that the last token sees, itself at the end, each with its bucket: 0 for
    its own column, 1 for the next one, 2 for the start token, which stands in no single column. *)
Definition seen (c : case) : list (nat * nat) :=
  (id Start, 2) ::
  match c with
  | Beginning a b => [(a, 1); (b, 1); (id Equals, 0)]
  | Column a b carry =>
    seen_digit 0 (own a) ++ seen_digit 1 (next a) ++
    seen_digit 0 (own b) ++ seen_digit 1 (next b) ++ [(written a b carry, 0)]
  end.

(** The token that has to follow. *)
Definition follows (c : case) : token :=
  match c with
  | Beginning a b => Digit ((a + b) mod 10)
  | Column a b carry =>
    match next a, next b with
    | None, None => if carry_out a b carry =? 0 then End else Digit 1
    | x, y => Digit ((worth x + worth y + carry_out a b carry) mod 10)
    end
  end.

(** [abacist prove] lists the same number, and [docs/certificate.md] counts it by hand. *)
Lemma number_of_cases : N.of_nat (length cases) = 24518%N.
Proof. vm_compute. reflexivity. Qed.
