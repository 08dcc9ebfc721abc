import DefaultTheme from "vitepress/theme";
import { MermaidPicture } from "./mermaid-picture.js";
import { VersionMenu } from "./version-menu.js";
import "./style.css";

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("MermaidPicture", MermaidPicture);
    app.component("VersionMenu", VersionMenu);
    // A page that cannot be rendered ends the build. Otherwise Vue logs the error, and the site lacks the page's text.
    app.config.throwUnhandledErrorInProduction = import.meta.env.SSR;
  },
};
