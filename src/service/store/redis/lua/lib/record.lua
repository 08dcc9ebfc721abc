-- The layout of a record, the stored form of a session. The table in docs/reference/redis-schema.md explains its parts, in their order.

local HEAD = '>BI4I4I4I4I4I6I6I6I6I5I5'
local BODY = 56 -- the position after the head
local CREATED, CREATED_END = 40, 45 -- where the head has the time of creation
local PLAIN, WITH_DEVICE, DEVICE_REQUIRED, BY_COOKIE, BY_TOKEN = 1, 2, 4, 8, 16 -- the flags, of which every record has PLAIN
local CLIENT_ID, AUDIENCES, USER_AGENT, ADDRESS, DISPLAY_NAME = 1, 2, 3, 4, 5 -- the texts after the subject
local AUTHENTICATION, FACTS, VERSION, LAST_SEEN, CLAIMS = 1, 2, 3, 4, 123 -- the first bytes of blocks and of claims
local DEVICE_TAIL = '>I6I2B' -- what follows the thumbprint of a key: since when it is registered or bound, its length, its kind
local THUMBPRINT, SINCE = -41, -9 -- where the thumbprint and DEVICE_TAIL begin, from the end of the record
local PROOF_KEY_BYTES = 6 -- the length of the time that stands in place of a key that each request proves (DPoP)
local BOUND, PROOF = 2, 4 -- parts of the kind: the key has been used; each request proves it
