// A sum or difference as on paper: the two numbers below each other, and the answer below a line.

function drawColumns(sheet) {
  const { problem, line, steps, begin } = shown, { notation } = problem;
  const columns = Math.max(problem.a.length, problem.b.length, steps.length - 1) + 2;
  sheet.className = columns > 14 ? "sheet long" : "sheet";
  sheet.replaceChildren(element("div", { class: "bar", "aria-hidden": "true" }));
  sheet.style.setProperty("--columns", columns);
  sheet.firstChild.style.gridRow = 3;
  line.forEach((token, i) => {
    if (i >= begin || !/^[0-9]$|^[+-]$/.test(token.text)) return;
    const isOperator = token.place === NOWHERE;
    const cell = element("span", { class: isOperator ? "token operator" : "token" }, isOperator ? notation.signText : token.text);
    cell.style.gridArea = isOperator ? "2 / 1" : `${token.row} / ${columns + 1 - token.place / notation.spacing}`;
    shown.tokens[i] = cell;
    sheet.append(cell);
  });
  steps.forEach((_, k) => {
    const button = tokenButton(k);
    button.style.gridArea = `4 / ${columns - k}`;
    sheet.append(button);
  });
}
