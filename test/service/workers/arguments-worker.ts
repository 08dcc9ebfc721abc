/** A worker that is ready at once, and reports its command-line arguments. */
const [, , ...args] = process.argv;
const text = JSON.stringify({ public: "http://127.0.0.1:1", admin: "http://127.0.0.1:2", args });
process.send?.({ type: "ready", text });
