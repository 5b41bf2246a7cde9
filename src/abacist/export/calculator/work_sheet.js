// A calculation that is written out: the problem, and below it the work, row by row.

function drawWork(sheet) {
  const { line, steps, begin } = shown, { notation } = shown.problem;
  sheet.className = "work";
  sheet.replaceChildren(element("p", { class: "muted" }, notation.explanation));
  const addRow = (name) => {
    const row = element("div", { class: `${name} ${notation.isMirrored ? "mirrored" : ""}` });
    sheet.append(row);
    return row;
  };
  const problem = addRow("written asked");
  line.slice(0, begin).forEach((token, i) => {
    if (i === 0) return; // the start token
    const cell = element("span", { class: "token" }, notation.shown(token.text));
    shown.tokens[i] = cell;
    problem.append(cell);
  });
  let row = null;
  steps.forEach((step, k) => {
    if (!row || (step.text !== END && notation.beginsRow(line[begin + k]))) row = addRow("written");
    row.append(tokenButton(k, notation.kind(step.text)));
  });
}
