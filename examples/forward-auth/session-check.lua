-- Calls session-service forward-auth for each request. Save this file as /etc/haproxy/session-check.lua.
local CHECK = "http://127.0.0.1:4181/check"
local ASKED = {
  "authorization", "cookie", "dpop", "accept", "origin", "user-agent", "sec-websocket-key", "upgrade",
  "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest",
}
local RESPONSE_HEADERS = {
  ["x-auth-subject"] = "txn.subject",
  ["x-auth-session"] = "txn.session",
  ["x-auth-client"] = "txn.client",
  ["x-auth-claims"] = "txn.claims",
  ["www-authenticate"] = "txn.challenge",
  ["location"] = "txn.location",
}

core.register_action("session_check", { "http-req" }, function(txn)
  local headers = {}
  local given = txn.http:req_get_headers()
  for _, name in ipairs(ASKED) do
    if given[name] then
      headers[name] = {}
      for at = 0, #given[name] do
        table.insert(headers[name], given[name][at])
      end
    end
  end
  -- These headers describe the client's request. The check compares a DPoP proof with them.
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-host"] = { given["host"] and given["host"][0] or "" }
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  headers["x-forwarded-for"] = { txn.sf:src() }
  -- HAProxy calls the check up to four times if it does not respond. The timeout, in ms, applies to each of these calls.
  local response = core.httpclient():get({ url = CHECK, headers = headers, timeout = 2000 })
  -- If the check does not respond, the client gets 503.
  txn:set_var("txn.checked", (response and response.status) or 503)
  for name, variable in pairs(RESPONSE_HEADERS) do
    local values = response and response.headers and response.headers[name]
    txn:set_var(variable, (values and values[0]) or "")
  end
  local cookies = (response and response.headers and response.headers["set-cookie"]) or {}
  for at = 0, 2 do
    if cookies[at] then
      txn:set_var("txn.cookie" .. (at + 1), cookies[at])
    end
  end
end, 0)
