#!lua flags=allow-oom
-- The time, so that commands can say until when they may act.
-- KEYS  1 partition
-- Returns it, ms.
return string.format('%.0f', clock())
