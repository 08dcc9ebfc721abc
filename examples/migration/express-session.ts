/** Sessions of express-session: MIGRATE_COOKIES=connect.sid */
import type { RequestHandler } from "express";
import { isFromSessionService } from "./service.ts";

/** What the login of the application has put into its session. */
declare module "express-session" {
  interface SessionData {
    user: { readonly id: string; readonly role: string };
  }
}

/** @param sessions what `session(…)` of express-session returns: `app.post("/migrate", migrate(sessions))` */
export function migrate(sessions: RequestHandler): RequestHandler {
  return async (request, response, next) => {
    const { authorization = "", cookie = "" } = request.headers;
    if (!(await isFromSessionService(new Headers({ authorization, cookie })))) {
      response.status(401).end();
      return;
    }
    sessions(request, response, (error) => {
      if (error) return next(error);
      const { user } = request.session;
      if (user === undefined) response.status(204).end();
      else response.json({ subject: user.id, claims: { role: user.role }, old_session_id: request.sessionID });
    });
  };
}
