import DefaultTheme from "vitepress/theme";
import { MermaidPicture } from "./mermaid-picture.js";
import "./style.css";

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => app.component("MermaidPicture", MermaidPicture),
};
