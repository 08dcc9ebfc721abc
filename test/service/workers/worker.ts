/** A worker that does only what the test orders. */
let isReady = false;
process.on("message", ({ type, id, all }: { type: string; id: number; all: readonly unknown[] }) => {
  if (type === "be_ready") {
    isReady = true;
    const text = JSON.stringify({ public: "http://127.0.0.1:1", admin: "http://127.0.0.1:2" });
    process.send?.({ type: "ready", text });
  } else if (type === "beat") process.send?.({ type: "heartbeat" });
  else if (type === "ask") process.send?.({ type: "metrics_wanted", id: 1 });
  else if (type === "all_metrics") process.exit(all.length);
  else if (!isReady) process.exit(3);
  else process.send?.({ type: "metrics", id, values: [] });
});
