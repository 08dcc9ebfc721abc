import { useData, withBase } from "vitepress";
import { defineComponent, h, onMounted, ref, watch } from "vue";

let count = 0;

/** A picture that is described by text in Mermaid's language. It is drawn in the reader's browser, anew when light and dark change. */
export const MermaidPicture = defineComponent({
  props: { code: { type: String, required: true }, name: { type: String, required: true } },
  setup({ code, name }) {
    const { isDark } = useData();
    const svg = ref("");
    const id = `picture-${++count}`;
    async function draw() {
      const { default: mermaid } = await import(/* @vite-ignore */ withBase("/mermaid/mermaid.esm.min.mjs"));
      mermaid.initialize({
        startOnLoad: false,
        securityLevel: "strict",
        theme: isDark.value ? "dark" : "neutral",
        themeVariables: { fontFamily: getComputedStyle(document.body).fontFamily, fontSize: "13px" },
        htmlLabels: false,
        // Pictures keep their size, and scroll where they are too wide: text that shrinks with them cannot be read.
        flowchart: { htmlLabels: false, useMaxWidth: false },
        sequence: { useMaxWidth: false },
        state: { useMaxWidth: false },
      });
      const drawn = await mermaid.render(id, decodeURIComponent(code));
      svg.value = drawn.svg;
    }
    onMounted(draw);
    watch(isDark, draw);
    // Readers that do not see the picture get its name; the text beside it says the same.
    return () =>
      h("div", { class: "picture", role: "img", "aria-label": name, tabindex: 0 }, [
        h("div", { "aria-hidden": "true", innerHTML: svg.value }),
      ]);
  },
});
