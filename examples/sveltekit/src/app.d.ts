import type { User } from "@session-service/server";

declare global {
  namespace App {
    interface Locals {
      user: User;
    }
  }
}
