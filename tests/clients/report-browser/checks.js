// What a report has to look like, asked of the page itself. Each function gives a list of what is
// wrong, in words; an empty one is good.
(() => {
  const name = (element) => (element.textContent || element.tagName).trim().slice(0, 40);
  const all = (selector, under = document) => [...under.querySelectorAll(selector)];
  const openAll = () => all("details").forEach((details) => { details.open = true; });
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  };

  // The page itself never scrolls sideways; what is wide scrolls inside.
  const width = () => {
    openAll();
    const wide = document.documentElement.scrollWidth;
    return wide > innerWidth ? [`the document is ${wide} px wide, the viewport ${innerWidth}`] : [];
  };

  // Every text of a drawing lies inside it.
  const inside = () => {
    openAll();
    return all("svg text").filter(seen).flatMap((text) => {
      const view = text.ownerSVGElement.viewBox.baseVal, box = text.getBBox();
      const out = box.x < -1 || box.y < -1 || box.x + box.width > view.width + 1 || box.y + box.height > view.height + 1;
      return out ? [`"${name(text)}" lies outside of its drawing (${Math.round(box.x)} to ${Math.round(box.x + box.width)} of ${view.width})`] : [];
    });
  };

  // No two texts of a drawing lie on each other by more than a fifth of the smaller.
  const overlaps = () => {
    openAll();
    return all("svg").flatMap((svg) => {
      const texts = all("text", svg).filter(seen).map((text) => [text, text.getBBox()]);
      const found = [];
      for (let i = 0; i < texts.length; i++) {
        for (let k = i + 1; k < texts.length; k++) {
          const [a, b] = [texts[i][1], texts[k][1]];
          const w = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
          const h = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
          if (w > 0 && h > 0 && w * h > 0.2 * Math.min(a.width * a.height, b.width * b.height)) {
            found.push(`"${name(texts[i][0])}" and "${name(texts[k][0])}" lie on each other`);
          }
        }
      }
      return found;
    });
  };

  // No text is drawn smaller than 8 px.
  const legible = () => {
    openAll();
    return all("svg").filter(seen).flatMap((svg) => {
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      return all("text", svg).flatMap((text) => {
        const size = parseFloat(getComputedStyle(text).fontSize) * scale;
        return size < 8 ? [`"${name(text)}" is ${size.toFixed(1)} px high`] : [];
      });
    });
  };

  const parse = (colour) => {
    const parts = colour.match(/[\d.]+/g);
    if (!parts || colour === "none") return null;
    const [r, g, b, a = 1] = parts.map(Number);
    return { r, g, b, a };
  };
  const over = (top, ground) => ({
    r: top.r * top.a + ground.r * (1 - top.a), g: top.g * top.a + ground.g * (1 - top.a),
    b: top.b * top.a + ground.b * (1 - top.a), a: 1,
  });
  const ground = (element) => {
    if (!element) return { r: 255, g: 255, b: 255, a: 1 };
    const own = parse(getComputedStyle(element).backgroundColor) || { r: 0, g: 0, b: 0, a: 0 };
    return own.a >= 1 ? own : over(own, ground(element.parentElement));
  };
  const light = ({ r, g, b }) => {
    const part = (value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };

  // Every text stands out from what is behind it: 4.5 to 1 (WCAG 2, level AA).
  const contrast = () => {
    openAll();
    const texts = all("body *").filter((element) => seen(element) && !element.closest("title, style, script")
      && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
    const found = new Map();
    for (const element of texts) {
      const style = getComputedStyle(element);
      const own = parse(element.closest("svg") ? style.fill : style.color);
      const back = ground(element.closest("svg") ? element.closest("svg") : element);
      if (!own) continue;
      const [a, b] = [light(over(own, back)), light(back)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) found.set(`${style.color} ${style.fill} ${element.className.baseVal ?? element.className}`, `"${name(element)}": ${ratio.toFixed(2)} to 1`);
    }
    return [...found.values()];
  };

  // Links lead somewhere, ids are unique, drawings are named, and each chapter's have a table.
  const structure = () => {
    const found = [];
    for (const link of all("a[href]")) {
      const to = link.getAttribute("href");
      if (!to.startsWith("#") || !document.getElementById(to.slice(1))) found.push(`the link ${to} leads nowhere`);
    }
    const ids = all("[id]").map((element) => element.id);
    ids.filter((id, place) => ids.indexOf(id) !== place).forEach((id) => found.push(`the id ${id} is there twice`));
    all("svg").filter((svg) => svg.getAttribute("role") !== "img" || !svg.getAttribute("aria-label"))
      .forEach((svg) => found.push(`a drawing has no name: ${name(svg)}`));
    let chapter = { heading: "the head", drawings: 0, tables: 0 };
    const end = () => { if (chapter.drawings && !chapter.tables) found.push(`${chapter.heading} has drawings and no table`); };
    for (const element of all("h2, svg, table")) {
      if (element.tagName === "H2") { end(); chapter = { heading: name(element), drawings: 0, tables: 0 }; }
      else if (element.tagName === "TABLE") chapter.tables++;
      else chapter.drawings++;
    }
    end();
    if (all("script").length) found.push("there is a script");
    return found;
  };

  // On paper nothing scrolls, and what is folded on the screen is there.
  const paper = () => {
    all("details").forEach((details) => { details.open = false; });
    const found = all(".scroll").filter((box) => box.scrollWidth > box.clientWidth + 1)
      .map((box) => `cut off: ${name(box)} (${box.scrollWidth} of ${box.clientWidth} px)`);
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) found.push(`the paper is ${innerWidth} px wide, the document ${wide}`);
    all("details table, details svg").filter((element) => !element.checkVisibility())
      .forEach((element) => found.push(`not on paper: ${name(element)}`));
    return found;
  };

  return { width, inside, overlaps, legible, contrast, structure, paper };
})()
