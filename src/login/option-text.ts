/** How texts for the user spell an option: a program with settings or flags of its own has other names. */
export type OptionText = (option: "flow" | "redirectHost" | "sameOriginEndpoints", value?: string) => string;

/** An option as the SDK spells it. */
export const sdkOption: OptionText = (option, value) => (value === undefined ? option : `${option}: "${value}"`);
