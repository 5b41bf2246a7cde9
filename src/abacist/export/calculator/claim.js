// The last part, what is proved, and `window.abacist` for scripts.

function describe() {
  const { certificate, facts } = data;
  const numbers = count(facts.parameters);
  const proof = CAN_CHECK ? ", and this page proves it in front of you" : "";
  $("lead").replaceChildren(
    `It is a transformer, the kind of network that powers chatbots, with ${numbers} numbers inside. It learned from ${facts.examples}, and nobody programmed it. `,
    element("strong", {}, certificate
      ? `It ${facts.claim} without a mistake${proof}.`
      : `It has no certificate.${CAN_CHECK ? " The check below shows whether it could have one." : ""}`),
  );
  $("sentences").replaceChildren(...(CAN_CHECK ? sentencesOfColumns() : sentencesOfWork()).map((sentence) => element("li", {}, sentence)));
  const repeated = CAN_CHECK ? " The check above repeats this in float64 with a program of its own." : " This page does not repeat the check.";
  $("certified").replaceChildren(...(certificate
    ? [element("b", { class: "good" }, "Certified. "), `abacist prove checked ${count(certificate.neighbourhoods)} neighbourhoods of these weights, found ${certificate.wrong} wrong, and a smallest margin of ${decimals(certificate.smallestMargin, 2)} logits${certificate.roundingIsProved ? ", and proved that rounding in float32 cannot overturn any" : ""}.${repeated}`]
    : [element("b", { class: "bad" }, "Not certified. "), data.objection]));
  const rows = {
    "SHA-256 of the weights": element("code", {}, weightsHash),
    "in the certificate": certificate ? element("span", { class: certificate.weightsHash === weightsHash ? "good" : "bad" }, certificate.weightsHash === weightsHash ? "✓ the same; computed here from the weights in this file" : `✗ another one: ${certificate.weightsHash}`) : "–",
    recipe: `${facts.recipe}, seed ${facts.seed}, step ${count(facts.step)}`,
    parameters: numbers,
    "trained on": facts.examples,
  };
  $("facts").replaceChildren(...Object.entries(rows).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function sentencesOfColumns() {
  return [
    "The model writes an answer one token after the other, units first, and always takes the token with the largest logit.",
    "A token attends only to the start token and to its own column and the next one, and it learns only how far apart columns are, not where they stand; so the next token depends on at most six tokens, wherever in the numbers they stand.",
    `Those tokens can hold ${count(NUM_NEIGHBOURHOODS)} different contents, and in each the right token is known.`,
    "If the model is right in all of them, the units are right, so the tens are right, and so on: by induction every token is right up to the last.",
    `Therefore the model ${data.facts.claim}, whichever they are.`,
  ];
}

function sentencesOfWork() {
  const { certificate, facts } = data;
  return [
    "The model writes out the calculation one token after the other, and always takes the token with the largest logit.",
    "A token attends only to the start token and to a few others near it in the written work, and it learns only how far away they are, not where they stand.",
    `Those tokens can hold finitely many different contents${certificate ? `, ${count(certificate.neighbourhoods)} in all` : ""}, and in each the right token is known.`,
    "If the model is right in all of them, every token of the work is right, by induction from the first to the last.",
    certificate ? `abacist prove found it right in all of them; therefore the model ${facts.claim}, whichever they are.` : "abacist prove has not found that of this model, so it may err.",
  ];
}

describe();
$("problem").value = notation.example;
calculate($("problem").value);

window.abacist = {
  weightsHash,
  /** The model's answer to a problem such as `12+34`, as text; null if what it writes cannot be read. */
  async solve(text) {
    const problem = notation.parse(text);
    const { steps } = intact.write(notation, notation.prompt(problem), notation.mostTokens(problem));
    return notation.read(problem, steps.map((step) => step.text));
  },
  /** Check every neighbourhood, where the page can. */
  check: checkExported,
};
