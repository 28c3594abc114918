"""The first hour of an agent in Python: python-agent.py <MCP server>. Every step is a command that a page shows.

It has no login, learns so from the exit code, has the user log in with two commands, calls a tool, and gets past a rejected
token. The standard library alone, so that it runs wherever agentauth does.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.request

url = sys.argv[1]


def agentauth(*words, **options):
    return subprocess.run(["agentauth", *words], text=True, capture_output=True, **options)


# 1. Without a login: nothing on stdout, exit code 4, and the command that helps.
first = agentauth("token", url)
assert (first.returncode, first.stdout) == (4, ""), first
hint = json.loads(first.stderr.splitlines()[-1])["error"]["hint"]
assert f"agentauth login {url}" in hint, hint

# 2. The login in two steps: the user opens the address, which redirects back to this machine, at any time before the second.
begun = json.loads(agentauth("login", url, "--no-wait", "--json", check=True).stdout)
assert begun["listening"], begun
with urllib.request.urlopen(begun["url"]) as page:
    assert page.status == 200
finished = json.loads(agentauth(*begun["finish"].split()[1:], check=True).stdout)
assert finished["logged_in"], finished

# 3. The server's tools, without a token in this program.
tools = json.loads(agentauth("mcp", "tools", url, "--json", check=True).stdout)
assert "whoami" in [tool["name"] for tool in tools], tools


# 4. A request of its own; a rejected token is replaced once.
def call(*flags):
    token = subprocess.check_output(["agentauth", "token", url, *flags], text=True).strip()
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami", "arguments": {}}}
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return token, response.read().decode()


token, answer = call()
assert "alice" in answer, answer
subprocess.run(["agentauth", "sandbox", "fault", "401:path=mcp"], check=True, stdout=subprocess.DEVNULL)
try:
    call()
    raise AssertionError("the server accepts the token")
except urllib.error.HTTPError as error:
    assert error.code == 401, error
replaced, answer = call("--force-refresh")
assert replaced != token and "alice" in answer

# 5. After the logout it is as it was.
agentauth("logout", url, check=True)
assert agentauth("token", url).returncode == 4
print("done")
