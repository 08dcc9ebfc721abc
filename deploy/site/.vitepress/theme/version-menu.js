import { useData, withBase } from "vitepress";
import BarMenu from "vitepress/dist/client/theme-default/components/VPNavBarMenuGroup.vue";
import ScreenMenu from "vitepress/dist/client/theme-default/components/VPNavScreenMenuGroup.vue";
import { computed, defineComponent, h, onMounted, ref } from "vue";

/** The menu of releases. A page reads at run time which there are, so it also leads to those that are published after it. */
export const VersionMenu = defineComponent({
  props: { version: String, changelog: String, screenMenu: Boolean },
  setup({ version, changelog, screenMenu }) {
    const { page } = useData();
    const releases = ref({});
    /** Returns an address beside the directory of this release: that of all releases. */
    const beside = (path) => new URL(`../${path}`, new URL(withBase("/"), location.origin)).href;
    onMounted(async () => {
      if (withBase("/") === "/") return; // a site of one version, such as `npm run docs` builds
      const response = await fetch(beside("versions.json"));
      if (response.ok) releases.value = await response.json();
    });
    // A target makes the browser follow the link: another release is another site.
    const linkTo = ([name, pages]) => {
      const here = page.value.relativePath.replace(/\.md$/, ".html");
      return { text: name, link: beside(`${name}/${pages.includes(here) ? here : ""}`), target: "_self", noIcon: true };
    };
    const items = computed(() => [
      ...Object.entries(releases.value)
        .filter(([name]) => name !== version)
        .map(linkTo),
      { text: "Changes", link: changelog },
    ]);
    return () =>
      screenMenu
        ? h(ScreenMenu, { text: version, items: items.value })
        : h(BarMenu, { item: { text: version, items: items.value } });
  },
});
