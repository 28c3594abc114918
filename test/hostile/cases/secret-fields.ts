/** Members of a device by which a client's secret may come, as the service documents them and elsewhere. */
export const SECRET_FIELDS = (secret: string) => ({
  client_secret: secret,
  client: { client_id: "client-1", client_secret: secret },
  clients: [{ client_id: "client-1", client_secret: secret }],
  registration: { metadata: { client_secret: secret } },
});
