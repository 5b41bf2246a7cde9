(** What is proved, and the axioms it rests on: compiling this file prints both. *)

From Coq Require Import List.
From Formal Require Import Line Weights Addition Check Samples Adds.
Import ListNotations.

Check transformer_adds.
Check greedy_decoding_adds.
Check transformer_agrees_with_the_package.
Print Assumptions greedy_decoding_adds.
