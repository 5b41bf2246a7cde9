// The last part, what is proved, and `window.abacist` for scripts.

function describe() {
  const { certificate, facts } = data;
  const numbers = count(facts.parameters);
  const origin = facts.examples
    ? `It learned from ${facts.examples}, and nobody programmed it.`
    : "Its run has 0 steps of training, so these are random or come from another program.";
  $("lead").replaceChildren(
    `It is a transformer, the kind of network that powers chatbots, with ${numbers} numbers inside. ${origin} `,
    element("strong", {}, certificate
      ? `It ${facts.claim} without a mistake, and this page proves it in front of you.`
      : "It has no certificate. The check below shows whether it could have one."),
  );
  const sentences = [
    "The model writes one token after the other, and always takes the token with the largest logit.",
    `A token attends only to the start token and to a few others, and it learns only how far away they are, not where they stand. ${notation.why}`,
    `Those tokens can hold ${certificate ? count(certificate.neighbourhoods) : "finitely many"} different contents, and in each the right token is known.`,
    "If the model is right in all of them, the first token is right, so the second is right, and so on: by induction every token is right up to the last.",
    certificate ? `Therefore the model ${facts.claim}, whichever they are.` : "Nobody has shown that of this model, so it may err.",
  ];
  $("sentences").replaceChildren(...sentences.map((sentence) => element("li", {}, sentence)));
  $("certified").replaceChildren(...(certificate
    ? [element("b", { class: "good" }, "Certified. "), `abacist prove checked ${count(certificate.neighbourhoods)} neighbourhoods of these weights, found ${certificate.wrong} wrong, and a smallest margin of ${decimals(certificate.smallestMargin, 2)} logits${certificate.roundingIsProved ? ", and proved that rounding in float32 cannot overturn any" : ""}. The check above repeats this in float64 with a program of its own.`]
    : [element("b", { class: "bad" }, "Not certified. "), data.objection]));
  const rows = {
    "SHA-256 of the weights": element("code", {}, weightsHash),
    "in the certificate": certificate ? element("span", { class: certificate.weightsHash === weightsHash ? "good" : "bad" }, certificate.weightsHash === weightsHash ? "✓ the same; computed here from the weights in this file" : `✗ another one: ${certificate.weightsHash}`) : "–",
    recipe: `${facts.recipe}, seed ${facts.seed}, step ${count(facts.step)}`,
    parameters: numbers,
    "trained on": facts.examples ?? "–",
  };
  $("facts").replaceChildren(...Object.entries(rows).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

describe();
$("problem").value = notation.example;
calculate($("problem").value);

window.abacist = {
  weightsHash,
  /** The model's answer to a problem such as `12+34`, as text; null if what it writes cannot be read. */
  async solve(text) {
    const problem = notation.parse(text);
    const { steps } = intact.write(problem);
    return problem.notation.read(problem, steps.map((step) => step.text));
  },
  /** Check every neighbourhood of the weights as they were exported. */
  async check() {
    const pause = pauses(() => {});
    const listed = await listNeighbourhoods(intact, notation.notations, pause);
    const { certified, neighbourhoods, wrong, smallestMargin } = await checkEverything(intact, notation.notations, listed, undefined, pause);
    return { certified, neighbourhoods, wrong, smallestMargin };
  },
};
