export default {
  headers: () => [
    {
      source: "/api/:path*",
      headers: [{ key: "access-control-allow-origin", value: "https://app.example" }],
    },
  ],
  typescript: { ignoreBuildErrors: true },
};
