// Several operations in one model: each in its own notation, with a start token that says which.
//
// All lines fit one window. To see no more there than alone, digits of sums and differences stand two
// places apart, and cells of products three (docs/certificate-calculator.md).

class FiveOperations {
  suggestions = {};

  constructor(operations) {
    const knows = (operation) => operations.includes(operation);
    this.operations = operations;
    this.notations = [
      ...(knows("+") ? [new Columns("+", { start: "<sum>", spacing: 2 })] : []),
      ...(knows("-") ? [new Columns("-", { start: "<difference>", spacing: 2 })] : []),
      ...(knows("*") ? [new Products({ start: "<product>", spacing: 3 })] : []),
      ...(knows("//") || knows("%") ? [new Divisions(["//", "%"].filter(knows), { start: "<division>", hasBrackets: true })] : []),
    ];
    for (const { example } of this.notations) this.suggestions[minus(example)] = () => example;
    if (knows("%")) this.suggestions["a remainder"] = () => "95283%37";
    if (knows("+")) this.suggestions["60 digits each"] = this.notations[0].suggestions["60 digits each"];
    this.example = (knows("*") ? this.notations.find(({ name }) => name === "Products") : this.notations[0]).example;
  }

  why = "Each token depends on a few others: two columns of a sum or difference, one cell of a product, or two columns of two rows of a division.";
  conclusion = "Whatever problem you type, each token of its line is right because of one of these.";

  /** Return the problem with its notation. Throws a message for the reader if the text is not a problem. */
  parse(text) {
    const usual = text.replace("−", "-").replace("×", "*").replace("÷", "//");
    const signs = ["//", "%", "*", "+", "-"].filter((sign) => this.operations.includes(sign));
    const operation = signs.find((sign) => usual.includes(sign));
    if (!operation) throw new Error(`Type two numbers with ${this.operations.join(" or ")} between them, such as ${this.example}.`);
    return this.notations.find((notation) => (notation.operations ?? [notation.operation]).includes(operation)).parse(usual);
  }
}
