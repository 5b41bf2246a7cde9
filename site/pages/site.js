// Wide tables scroll, so the keyboard must be able to reach them.
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
  }
});
