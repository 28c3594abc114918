/** What a terminal can show of a login beside text. */
export interface LoginDisplay {
  /** Prints an address of this machine on a line of its own, as a hyperlink where the terminal has them. */
  link(url: string): void;
  /** Draws a QR code; false where the terminal cannot show it. */
  qrCode(text: string): Promise<boolean>;
}
