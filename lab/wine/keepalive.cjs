// Loaded into each node.exe under wine: wine 8 fails a connection whose keep-alive is set before it is made, as fetch does.
require("node:net").Socket.prototype.setKeepAlive = function setKeepAlive() {
  return this;
};
