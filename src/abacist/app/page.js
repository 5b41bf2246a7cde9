// Brings answers, the grid of lengths and the vectors to life. Everything that is shown came with
// the page; nothing is fetched. Listeners sit on the document, as Gradio replaces what is inside.
(() => {
  "use strict";

  const parsed = new WeakMap();
  const within = (event, selector) =>
    event.target instanceof Element ? event.target.closest(selector) : null;

  // A card is used again for the next answer, so what was parsed holds for its text only.
  function insideOf(card) {
    const text = card.dataset.inside;
    if (parsed.get(card)?.text !== text) parsed.set(card, { text, inside: JSON.parse(text) });
    return parsed.get(card).inside;
  }

  function child(parent, tag, text) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  const percent = (share) => `${Math.round(100 * share)}%`;
  const named = (inside, key) => {
    const [text, place] = inside.keys[key];
    return place ? `${text} (${place})` : text;
  };

  // Shares by token of one head, or of all on average.
  function shares(inside, number, chosen) {
    const looks = inside.attention[number];
    const heads = chosen === "all" ? looks : [looks[Number(chosen)]];
    const total = new Map();
    for (const head of heads)
      for (const [key, share] of head)
        total.set(key, (total.get(key) || 0) + share / heads.length);
    return total;
  }

  function look(card, button) {
    const inside = insideOf(card);
    const number = Number(button.dataset.written);
    const chosen = card.querySelector(".heads").value;
    const seen = shares(inside, number, chosen);
    for (const token of card.querySelectorAll(".token")) {
      const share = seen.get(Number(token.dataset.key ?? -1)) || 0;
      token.style.setProperty("--look", share.toFixed(3));
      if (share >= 0.005) token.dataset.share = percent(share);
      else delete token.dataset.share;
      token.classList.toggle("looking", token === button);
    }
    tell(card.querySelector(".looked"), inside, number, chosen);
  }

  function tell(place, inside, number, chosen) {
    const [text, sure, rival, rivalSure] = inside.written[number];
    place.replaceChildren();
    child(place, "p", `Wrote ${text}, ${sure} sure; next likeliest ${rival}, ${rivalSure}. It looked at:`);
    const body = child(child(place, "table"), "tbody");
    const heads = inside.heads.map((name, head) => [name, inside.attention[number][head]]);
    const shown = chosen === "all" ? heads.slice(0, 8) : [heads[Number(chosen)]];
    for (const [name, looks] of shown) {
      const row = child(body, "tr");
      child(row, "th", name).scope = "row";
      const most = looks.slice(0, 4).map(([key, share]) => `${named(inside, key)} ${percent(share)}`);
      child(row, "td", most.join(", ") || "nothing in particular");
    }
    if (heads.length > shown.length && chosen === "all")
      child(place, "p", `${heads.length - shown.length} more heads: choose one above.`);
  }

  function stopAfter(card, slider) {
    const inside = insideOf(card);
    const stage = Number(slider.value);
    const isLast = stage === inside.stages.length - 1;
    slider.setAttribute("aria-valuetext", inside.stages[stage]);
    card.querySelector(".stage").textContent = inside.stages[stage];
    for (const button of card.querySelectorAll(".written")) {
      const number = Number(button.dataset.written);
      const text = inside.likeliest[stage][number];
      button.querySelector(".text").textContent = text;
      button.classList.toggle("early", !isLast && text !== inside.written[number][0]);
      button.style.setProperty("--sure", inside.probability[stage][number]);
    }
  }

  // Gradio changes what differs from the last answer and leaves the rest as it is.
  function begin(card) {
    const slider = card.querySelector(".stages");
    if (slider) slider.value = slider.max;
    for (const button of card.querySelectorAll(".written"))
      for (const animation of button.getAnimations()) {
        animation.cancel();
        animation.play();
      }
  }

  // Of buttons that stand in rows, the one that an arrow key leads to.
  function neighbour(buttons, from, key) {
    const box = (button) => button.getBoundingClientRect();
    const { left, top, height } = box(from);
    const sideways = key === "ArrowLeft" || key === "ArrowRight";
    const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    let best = null;
    let least = Infinity;
    for (const button of buttons) {
      const along = sign * (sideways ? box(button).left - left : box(button).top - top);
      const across = Math.abs(sideways ? box(button).top - top : box(button).left - left);
      // Digits that are still rising into place are of the same row.
      if (along > 2 && (!sideways || across < height / 2) && along + 100 * across < least) {
        least = along + 100 * across;
        best = button;
      }
    }
    return best;
  }

  function step(event, group, selector) {
    if (!event.key.startsWith("Arrow")) return;
    const from = within(event, selector);
    const to = neighbour(group.querySelectorAll(selector), from, event.key);
    event.preventDefault();
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  function move(vectors, slider) {
    const places = JSON.parse(vectors.dataset.places)[Number(slider.value)];
    const told = JSON.parse(vectors.dataset.steps)[Number(slider.value)].toLocaleString("en");
    vectors.querySelectorAll(".point").forEach((point, number) => {
      point.setAttribute("transform", `translate(${places[number].join(" ")})`);
    });
    vectors.querySelector("output").textContent = told;
    slider.setAttribute("aria-valuetext", `step ${told}`);
  }

  new MutationObserver((changes) => {
    for (const card of new Set(changes.map((change) => change.target)))
      if (card.matches(".answer")) begin(card);
  }).observe(document.documentElement, {
    attributes: true,
    subtree: true,
    attributeFilter: ["data-inside"],
  });

  // Gradio writes the name of a group beside it, where nobody who cannot see finds it.
  new MutationObserver(() => {
    for (const group of document.querySelectorAll("fieldset:not([aria-label])")) {
      const name = group.querySelector("[data-testid=block-info]");
      if (name) group.setAttribute("aria-label", name.textContent.trim());
    }
  }).observe(document.documentElement, { childList: true, subtree: true });

  for (const kind of ["pointerover", "focusin"])
    document.addEventListener(kind, (event) => {
      const button = within(event, ".answer .written");
      if (button) look(button.closest(".answer"), button);
    });
  document.addEventListener("change", (event) => {
    const select = within(event, ".answer .heads");
    const card = select && select.closest(".answer");
    const button = card && card.querySelector(".looking");
    if (button) look(card, button);
  });
  document.addEventListener("input", (event) => {
    const stages = within(event, ".answer .stages");
    if (stages) stopAfter(stages.closest(".answer"), stages);
    const steps = within(event, ".vectors input");
    if (steps) move(steps.closest(".vectors"), steps);
  });
  document.addEventListener("keydown", (event) => {
    const card = within(event, ".answer .written") && within(event, ".answer");
    if (card) step(event, card, ".written");
    const grid = within(event, ".lengths button") && within(event, ".lengths");
    if (grid) step(event, grid, "button");
  });
  document.addEventListener("click", (event) => {
    const cell = within(event, ".lengths button");
    if (!cell) return;
    for (const button of cell.closest(".lengths").querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button === cell));
  });
})();
