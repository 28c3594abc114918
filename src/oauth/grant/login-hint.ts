/** The hint of an error whose remedy is a login and nothing else. */
export const LOGIN_HINT = "call login() with the account and the scope of the remedy";
