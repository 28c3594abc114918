import { type AddHelpTextContext, type AddHelpTextPosition, Command } from "commander";
import { commandPage } from "./page.js";
import type { HelpedText, HelpLayout } from "./parts.js";
import { rootPage } from "./root-page.js";

/** A command whose help comes in the order of need: usage, examples, subcommands, flags, and the rare flags by name. */
export class HelpedCommand extends Command implements HelpedText {
  more = "";
  readonly #layout: HelpLayout;

  constructor(name: string, layout: HelpLayout) {
    super(name);
    this.#layout = layout;
  }

  override createCommand(name = ""): HelpedCommand {
    return new HelpedCommand(name, this.#layout);
  }

  override addHelpText(_position: AddHelpTextPosition, text: string | ((context: AddHelpTextContext) => string)): this {
    this.more += typeof text === "string" ? text : text({ error: false, command: this });
    return this;
  }

  override helpInformation(): string {
    const page = this.parent === null ? rootPage : commandPage;
    return `${page(this, this.#layout).join("\n")}\n`;
  }
}
