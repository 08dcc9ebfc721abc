import localSearchIndex from "@localSearchIndex";
import MiniSearch from "minisearch";
import { useRouter } from "vitepress";
import { computed, defineComponent, h, onMounted, ref, shallowRef } from "vue";

const MAX_RESULTS = 15;

/** The search, in place of VitePress's, which readers of screens cannot use: a dialog with a field and a list of links. */
export default defineComponent({
  emits: ["close"],
  setup(_, { emit }) {
    const router = useRouter();
    const dialog = ref();
    const query = ref("");
    const index = shallowRef();
    onMounted(async () => {
      dialog.value.showModal();
      const { default: json } = await localSearchIndex.root();
      index.value = MiniSearch.loadJSON(json, {
        fields: ["title", "titles", "text"],
        storeFields: ["title", "titles"],
        searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } },
      });
    });
    const results = computed(() => index.value?.search(query.value).slice(0, MAX_RESULTS) ?? []);
    function open(event, id) {
      event.preventDefault();
      emit("close");
      router.go(id);
    }
    /** Moves the focus among the field and the links. */
    function move(event) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const stops = [...dialog.value.querySelectorAll("input, a")];
      stops[Math.min(Math.max(stops.indexOf(document.activeElement) + step, 0), stops.length - 1)].focus();
    }
    const field = () =>
      h("input", {
        // A field of the type `search` would take the first Escape for itself.
        role: "searchbox",
        "aria-label": "Search",
        placeholder: "Search",
        value: query.value,
        onInput: ({ target }) => {
          query.value = target.value;
        },
      });
    const result = ({ id, title, titles }) =>
      h("li", [h("a", { href: id, onClick: (event) => open(event, id) }, [...titles, title].join(" › "))]);
    return () =>
      h(
        "dialog",
        { ref: dialog, class: "site-search", "aria-label": "Search", onClose: () => emit("close"), onKeydown: move },
        [
          h("form", { onSubmit: (event) => open(event, results.value[0]?.id ?? "") }, field()),
          h("p", { role: "status" }, query.value === "" ? "" : `${results.value.length} results`),
          h("ul", results.value.map(result)),
        ],
      );
  },
});
