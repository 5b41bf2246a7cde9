// Makes answers, the certificate, the grid of lengths and the vectors interactive. All data came with
// the page; nothing is fetched. Listeners are on the document, because Gradio replaces its children.
(() => {
  "use strict";

  const parsed = new WeakMap();
  const within = (event, selector) =>
    event.target instanceof Element ? event.target.closest(selector) : null;

  const MILLISECONDS_PER_TOKEN = 900;
  const SVG = "http://www.w3.org/2000/svg";

  // Gradio reuses a card for the next answer, so parsed data is valid for one text only.
  function insideOf(card) {
    const text = card.dataset.inside;
    if (parsed.get(card)?.text !== text) parsed.set(card, { text, inside: JSON.parse(text) });
    return parsed.get(card).inside;
  }

  function child(parent, tag, text) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  const percent = (share) => `${Math.round(100 * share)}%`;
  const named = (inside, key) => {
    const [text, place] = inside.keys[key];
    return place ? `${text} (${place})` : text;
  };

  // Shares by token of one head, or of all on average. A head that is switched off looks at nothing.
  function shares(inside, number, chosen) {
    const isOn = (head) => !inside.off.includes(inside.heads[head]);
    const heads = inside.attention[number].filter(
      (_, head) => isOn(head) && (chosen === "all" || head === Number(chosen)),
    );
    const total = new Map();
    for (const head of heads)
      for (const [key, share] of head)
        total.set(key, (total.get(key) || 0) + share / heads.length);
    return total;
  }

  // Show what the heads looked at for one written token: shares, lines, and the tokens in view.
  function look(card, button) {
    const inside = insideOf(card);
    const number = Number(button.dataset.written);
    const chosen = card.querySelector(".heads").value;
    const seen = shares(inside, number, chosen);
    const field = new Set(inside.fields[number] ?? []);
    for (const token of card.querySelectorAll(".token")) {
      const key = Number(token.dataset.key ?? -1);
      const share = seen.get(key) || 0;
      token.style.setProperty("--look", share.toFixed(3));
      if (share >= 0.005) token.dataset.share = percent(share);
      else delete token.dataset.share;
      token.classList.toggle("in-view", field.has(key));
      token.classList.toggle("looking", token === button);
    }
    drawLines(card, button, seen);
    describe(card.querySelector(".looked"), inside, number, chosen);
  }

  // Lines from the token being written to the tokens that were read, as wide as their shares.
  function drawLines(card, button, seen) {
    const sheet = card.querySelector(".sheet, .line");
    sheet.querySelector("svg")?.remove();
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("class", "lines");
    picture.setAttribute("aria-hidden", "true");
    const centre = (token) => [
      token.offsetLeft + token.offsetWidth / 2,
      token.offsetTop + token.offsetHeight / 2,
    ];
    const [x, y] = centre(button);
    for (const token of sheet.querySelectorAll("[data-key]")) {
      const share = seen.get(Number(token.dataset.key)) || 0;
      if (share < 0.03 || token === button) continue;
      const [left, top] = centre(token);
      const line = document.createElementNS(SVG, "path");
      const bend = Math.abs(left - x) < 4 ? 18 : 0;
      line.setAttribute("d", `M${x} ${y}Q${(x + left) / 2 + bend} ${(y + top) / 2} ${left} ${top}`);
      line.style.strokeWidth = `${(1 + 5 * share).toFixed(1)}px`;
      picture.append(line);
    }
    sheet.append(picture);
  }

  function describe(place, inside, number, chosen) {
    const [text, sure, rival, rivalSure] = inside.written[number];
    const right = inside.wrong[number];
    place.replaceChildren();
    if (inside.explanations[number]) child(place, "p", `On paper: ${inside.explanations[number]}`).className = "rule";
    const verdict = right === null ? "" : ` That is wrong: right is ${right}.`;
    child(place, "p", `The model wrote ${text}, ${sure} sure; next likeliest ${rival}, ${rivalSure}.${verdict}`);
    child(place, "p", "It looked at:");
    const body = child(child(place, "table"), "tbody");
    const heads = inside.heads.map((name, head) => [name, inside.attention[number][head]]);
    const shown = chosen === "all" ? heads.slice(0, 8) : [heads[Number(chosen)]];
    for (const [name, weights] of shown) {
      const row = child(body, "tr");
      child(row, "th", name).scope = "row";
      if (inside.off.includes(name)) {
        child(row, "td", "switched off");
        continue;
      }
      const most = weights.slice(0, 4).map(([key, share]) => `${named(inside, key)} ${percent(share)}`);
      child(row, "td", most.join(", ") || "nothing in particular");
    }
    if (heads.length > shown.length && chosen === "all")
      child(place, "p", `${heads.length - shown.length} more heads: choose one below.`);
  }

  // Playing ------------------------------------------------------------------------------------

  const timers = new WeakMap();
  const count = (card) => card.querySelectorAll(".written").length;
  const stepOf = (card) => Number(card.dataset.step ?? -1);

  // Show the line as far as it is written after `step`; the view follows the token being written.
  function showStep(card, step) {
    const last = count(card) - 1;
    step = Math.max(0, Math.min(last, step));
    card.dataset.step = step;
    let current = null;
    for (const button of card.querySelectorAll(".written")) {
      const number = Number(button.dataset.written);
      button.classList.toggle("pending", number > step);
      for (const animation of button.getAnimations()) animation.finish();
      if (number === step) current = button;
    }
    card.querySelector(".progress").textContent = `token ${step + 1} of ${last + 1}`;
    look(card, current);
    const view = card.querySelector(".scroll");
    const centre = current.offsetLeft + current.offsetWidth / 2 - view.clientWidth / 2;
    view.scrollTo({ left: centre, behavior: isStill() ? "auto" : "smooth" });
    light(card, step);
  }

  const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  function play(card) {
    if (timers.has(card)) return pause(card);
    const next = () => {
      const step = stepOf(card) + 1;
      if (step >= count(card) || !card.isConnected) return pause(card);
      showStep(card, step);
    };
    if (stepOf(card) >= count(card) - 1) delete card.dataset.step;
    timers.set(card, setInterval(next, MILLISECONDS_PER_TOKEN * Math.min(1, 20 / count(card))));
    nameButtons(card, "⏸ Pause", "⏸ Pause");
    next();
  }

  function pause(card) {
    clearInterval(timers.get(card));
    timers.delete(card);
    nameButtons(card, "▶ Play", "▶ Slide the window over the problem");
  }

  function nameButtons(card, playing, sliding) {
    const button = card.querySelector(".play");
    if (button) button.textContent = playing;
    const slide = document.querySelector("#certificate .slide");
    if (slide && card === firstCard()) slide.textContent = sliding;
  }

  // The certificate ----------------------------------------------------------------------------

  const TILE = 4;
  const TILES_PER_ROW = 200;
  const firstCard = () => document.querySelector("#shown .answer[data-inside]");

  // The upper left corner of a tile: groups of tiles are separated by two rows, as in the picture.
  function corner(sizes, number) {
    let top = 0;
    for (const size of sizes) {
      if (number < size)
        return [(number % TILES_PER_ROW) * TILE, top + Math.floor(number / TILES_PER_ROW) * TILE];
      number -= size;
      top += Math.ceil(size / TILES_PER_ROW) * TILE + 2 * TILE;
    }
    return null;
  }

  function light(card, step) {
    const proof = document.querySelector("#certificate .window-over-tiles");
    if (!proof || card !== firstCard()) return;
    const inside = insideOf(card);
    const sizes = JSON.parse(proof.dataset.sizes);
    const lights = proof.querySelector(".lights");
    lights.replaceChildren();
    const draw = (tag, attributes) => {
      const mark = document.createElementNS(SVG, tag);
      for (const [name, value] of Object.entries(attributes)) mark.setAttribute(name, value);
      lights.append(mark);
    };
    const points = [];
    let number = null;
    for (let i = 0; i <= step; i++) {
      number = inside.neighbourhoods[i] ?? null;
      const place = number === null ? null : corner(sizes, number);
      if (!place) continue;
      points.push(place.map((edge) => edge + TILE / 2 - 0.5));
    }
    draw("polyline", { class: "path", points: points.map((point) => point.join(",")).join(" ") });
    for (const [x, y] of points)
      draw("rect", { class: "lit", x: x - TILE, y: y - TILE, width: 2 * TILE, height: 2 * TILE });
    if (number !== null) {
      const [cx, cy] = points[points.length - 1];
      draw("circle", { class: "ring", cx, cy, r: 12 });
    }
    strip(proof.querySelector(".strip"), card, inside, step, number, sizes);
  }

  // Without an answer there is no path over the tiles.
  function clearWindow() {
    const proof = document.querySelector("#certificate .window-over-tiles");
    for (const part of proof?.querySelectorAll(".lights, .strip") ?? []) part.replaceChildren();
  }

  // The line around the window: a copy of the sheet's tokens in and near the receptive field.
  function strip(place, card, inside, step, number, sizes) {
    place.replaceChildren();
    const field = new Set(inside.fields[step] ?? []);
    const tokens = [...card.querySelectorAll(".sheet [data-key]")];
    const column = (token) => Number(token.style.gridColumnStart);
    const columns = tokens
      .filter((token) => field.has(Number(token.dataset.key)) && column(token) > 4)
      .map(column);
    if (columns.length) {
      const [low, high] = [Math.min(...columns) - 6, Math.max(...columns) + 6];
      const grid = child(place, "div");
      grid.className = "strip-grid";
      for (const token of tokens) {
        if (column(token) < low || column(token) > high || column(token) <= 4) continue;
        const isPending = Number(token.dataset.written ?? -1) > step;
        const text = (token.querySelector(".text") ?? token).textContent;
        const copy = child(grid, "span", isPending ? "?" : text);
        copy.className = field.has(Number(token.dataset.key)) ? "inside-window" : "";
        if (Number(token.dataset.written ?? -1) === step) copy.className = "now";
        copy.style.gridRow = token.style.gridRowStart;
        copy.style.gridColumn = (column(token) - low) / 2 + 1;
      }
    }
    const total = sizes.reduce((sum, size) => sum + size, 0).toLocaleString("en");
    const text =
      number === null
        ? "This window occurs in no right calculation, so the proof does not speak of it."
        : `Neighbourhood ${(number + 1).toLocaleString("en")} of ${total}: checked, right${inside.off.length ? " with all parts on" : ""}.`;
    child(place, "p", text);
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
    pause(card);
    delete card.dataset.step;
    const slider = card.querySelector(".stages");
    if (slider) slider.value = slider.max;
    const progress = card.querySelector(".progress");
    if (progress) progress.textContent = "";
    card.querySelector(".sheet svg, .line svg")?.remove();
    for (const token of card.querySelectorAll(".token")) {
      token.classList.remove("pending", "in-view", "looking");
      token.style.removeProperty("--look");
      delete token.dataset.share;
    }
    for (const button of card.querySelectorAll(".written"))
      for (const animation of button.getAnimations()) {
        animation.cancel();
        animation.play();
      }
    showUnits(card);
    if (card === firstCard()) light(card, count(card) - 1);
  }

  // The writing begins at the units, on the right of a long number.
  function showUnits(card) {
    const view = card.querySelector(".scroll");
    if (view && card.querySelector(".sheet")) view.scrollLeft = view.scrollWidth;
  }

  // The button to which an arrow key leads from another one.
  function nextButton(buttons, from, key) {
    const box = (button) => button.getBoundingClientRect();
    const { left, top, height } = box(from);
    const sideways = key === "ArrowLeft" || key === "ArrowRight";
    const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    let best = null;
    let least = Infinity;
    for (const button of buttons) {
      const along = sign * (sideways ? box(button).left - left : box(button).top - top);
      const across = Math.abs(sideways ? box(button).top - top : box(button).left - left);
      // Digits that are still moving into place belong to the same row.
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
    const to = nextButton(group.querySelectorAll(selector), from, event.key);
    event.preventDefault();
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  function move(vectors, slider) {
    const places = JSON.parse(vectors.dataset.places)[Number(slider.value)];
    const label = JSON.parse(vectors.dataset.steps)[Number(slider.value)].toLocaleString("en");
    vectors.querySelectorAll(".point").forEach((point, number) => {
      point.setAttribute("transform", `translate(${places[number].join(" ")})`);
    });
    vectors.querySelector("output").textContent = label;
    slider.setAttribute("aria-valuetext", `step ${label}`);
  }

  new MutationObserver((changes) => {
    const cards = new Set();
    for (const change of changes) {
      if (change.type === "attributes") cards.add(change.target);
      for (const node of change.addedNodes)
        if (node instanceof Element)
          for (const card of [node, ...node.querySelectorAll(".answer")]) cards.add(card);
    }
    for (const card of cards) if (card.matches(".answer[data-inside]")) begin(card);
    const isAboutAnswers = changes.some(({ target }) => target instanceof Element && target.closest("#shown"));
    if (isAboutAnswers && !firstCard()) clearWindow();
  }).observe(document.documentElement, {
    attributes: true,
    childList: true,
    subtree: true,
    attributeFilter: ["data-inside"],
  });

  // Gradio does not connect the name of a group with the group, so screen readers miss it.
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
    const pressed = within(event, ".player button, #certificate .slide");
    if (!pressed) return;
    const card = pressed.closest(".answer") ?? firstCard();
    if (!card) return;
    if (pressed.matches(".play, .slide")) return play(card);
    pause(card);
    const step = card.dataset.step === undefined && pressed.matches(".back") ? count(card) : stepOf(card);
    showStep(card, step + (pressed.matches(".step") ? 1 : -1));
  });
  document.addEventListener("click", (event) => {
    const cell = within(event, ".lengths button");
    if (!cell) return;
    for (const button of cell.closest(".lengths").querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button === cell));
  });
})();
