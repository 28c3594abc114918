import Theme from "vitepress/theme-without-fonts";
import Mermaid from "./Mermaid.vue";
import "./style.css";

export default {
  extends: Theme,
  enhanceApp({ app }) {
    app.component("Mermaid", Mermaid);
  },
};
