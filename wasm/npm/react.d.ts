import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type { SealiftEventMap, SealiftVerifier } from "./element.js";

/** The element's attributes, as element.d.ts describes them. */
interface VerifierAttributes {
  src?: string;
  name?: string;
  form?: string;
  required?: boolean;
  disabled?: boolean;
  multiple?: boolean;
  threshold?: string;
  compatible?: string;
  deep?: "no";
  settings?: "readonly";
  variant?: "compact" | "full";
  hide?: string;
  "trust-src"?: string;
  "revoked-src"?: string;
  "floor-src"?: string;
  "base-src"?: string;
  "wasm-url"?: string;
  "worker-url"?: string;
  "inside-url"?: string;
}

type VerifierEvents = { [Name in keyof SealiftEventMap as `on${Name}`]?: (event: SealiftEventMap[Name]) => void };

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "sealift-verifier": DetailedHTMLProps<HTMLAttributes<SealiftVerifier>, SealiftVerifier> & VerifierAttributes & VerifierEvents;
    }
  }
}
