/**
 * Read CAP 1.2 and 1.1 alerts: every `<info>` block is an item with the attributes that the server gives it.
 *
 * Coordinates of CAP are latitude,longitude; places have longitude first. The server reads a published alert itself:
 * this reader shows the alert before, and makes its areas regions of a filter.
 */

import type { Place } from "../filter/model.ts";
import { circleInDegrees } from "../places/circles.ts";
import type { ReadFile, ReadItem } from "./files.ts";
import { checkRing, ReadError } from "../places/checks.ts";
import { unionOf } from "../places/clipping.ts";

const ALERT_ELEMENTS = (
  "identifier sender sent status msgType source scope restriction addresses code note references incidents"
).split(" ");
const INFO_ELEMENTS = (
  "language category event responseType urgency severity certainty audience effective onset expires senderName " +
  "headline description instruction web contact"
).split(" ");
const REQUIRED = ["identifier", "sender", "sent", "status", "msgType", "scope"];
const REQUIRED_INFO = ["category", "event", "urgency", "severity", "certainty"];

/** Read the text of one alert. Areas that cannot be read are problems; the alert keeps the others. */
export function readCap(text: string): ReadFile {
  if (/<!DOCTYPE/i.test(text)) throw new ReadError("", "document type declarations are not allowed in CAP alerts");
  const document = new DOMParser().parseFromString(text.replace(/^\uFEFF/, ""), "application/xml");
  const broken = document.getElementsByTagName("parsererror")[0];
  if (broken !== undefined) throw new ReadError("", `the text is not XML: ${firstLine(broken.textContent)}`);
  const alert = document.documentElement;
  if (alert.localName !== "alert") throw new ReadError(alert.localName, "need the element alert of CAP");
  return readAlert(alert);
}

function readAlert(alert: Element): ReadFile {
  const shared = values(alert, ALERT_ELEMENTS);
  checkRequired(shared, REQUIRED, "alert");
  const found: ReadFile = { items: [], problems: [] };
  const infos = children(alert, "info");
  const name = shared["identifier"] ?? "";
  if (infos.length === 0) {
    found.items.push({ name, attributes: shared, attribute: "area", place: null });
  }
  infos.forEach((info, k) => {
    const where = infos.length > 1 ? `info ${k + 1}` : "info";
    try {
      found.items.push(infoItem(info, shared, where, found.problems));
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      found.problems.push(error.message);
    }
  });
  return found;
}

function infoItem(info: Element, shared: Record<string, string>, where: string, problems: string[]): ReadItem {
  const own = values(info, INFO_ELEMENTS);
  checkRequired(own, REQUIRED_INFO, where);
  const areas = children(info, "area");
  const places = areas.flatMap((area, k) => areaPlaces(area, `${where}, area ${k + 1}`, problems));
  const descriptions = areas.map((area) => values(area, ["areaDesc"])["areaDesc"]).filter((text) => text !== undefined);
  const attributes = {
    ...shared,
    language: "en-US",
    ...own,
    ...named(info, "parameter"),
    ...named(info, "eventCode"),
    ...areas.reduce<Record<string, string>>((all, area) => ({ ...all, ...named(area, "geocode") }), {}),
    ...(descriptions.length ? { areaDesc: descriptions.join("; ") } : {}),
  };
  const name = own["headline"] ?? own["event"] ?? shared["identifier"] ?? "";
  return { name, attributes, attribute: "area", place: places.length ? unionOf(places) : null };
}

function areaPlaces(area: Element, where: string, problems: string[]): Place[] {
  const polygons = children(area, "polygon").map((element, k) => () => polygonOf(element, `${where}, polygon ${k + 1}`));
  const circles = children(area, "circle").map((element, k) => () => circleOf(element, `${where}, circle ${k + 1}`));
  if (polygons.length + circles.length === 0) {
    problems.push(`${where}: it has no polygon and no circle; zones by code are known to the server alone`);
  }
  return [...polygons, ...circles].flatMap((read) => {
    try {
      return [read()];
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      problems.push(error.message);
      return [];
    }
  });
}

function polygonOf(element: Element, where: string): Place {
  const pairs = element.textContent.trim().split(/\s+/).filter((pair) => pair !== "");
  const ring = pairs.map((pair, k) => pairOf(pair, `${where}, point ${k + 1}`));
  return { type: "Polygon", coordinates: [checkRing(ring, where, { plain: false })] };
}

function circleOf(element: Element, where: string): Place {
  const [centre, radius, ...others] = element.textContent.trim().split(/\s+/);
  if (centre === undefined || radius === undefined || others.length > 0) {
    throw new ReadError(where, `need "latitude,longitude radius", got "${element.textContent.trim().slice(0, 60)}"`);
  }
  try {
    return circleInDegrees(pairOf(centre, where), Number(radius));
  } catch (error) {
    if (error instanceof ReadError && error.where === "circle") throw new ReadError(where, error.what);
    throw error;
  }
}

/** Return longitude and latitude of `latitude,longitude`. */
function pairOf(pair: string, where: string): [number, number] {
  const numbers = pair.split(",");
  const [lat, lon] = numbers.map((part) => (part.trim() === "" ? NaN : Number(part)));
  if (numbers.length !== 2 || lat === undefined || lon === undefined || !Number.isFinite(lat) || !Number.isFinite(lon)) {
    throw new ReadError(where, `need "latitude,longitude", got "${pair.slice(0, 60)}"`);
  }
  if (Math.abs(lat) > 90 || Math.abs(lon) > 180) {
    throw new ReadError(where, `latitude ${lat}, longitude ${lon} is out of range; CAP has the latitude first`);
  }
  return [lon, lat];
}

function values(parent: Element, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of names) {
    const text = children(parent, name)[0]?.textContent.trim();
    if (text !== undefined && text !== "") found[name] = text;
  }
  return found;
}

/** Return `parameter.NAME` and its like; several values of one name become one text. */
function named(parent: Element, tag: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const element of children(parent, tag)) {
    const { valueName, value = "" } = values(element, ["valueName", "value"]);
    if (valueName === undefined) continue;
    const name = `${tag}.${valueName}`;
    found[name] = name in found ? `${String(found[name])}; ${value}` : value;
  }
  return found;
}

function children(parent: Element, name: string): Element[] {
  return [...parent.children].filter((child) => child.localName === name);
}

function checkRequired(found: Record<string, string>, required: readonly string[], where: string): void {
  const missing = required.filter((name) => !(name in found));
  if (missing.length) throw new ReadError(where, `it lacks ${missing.join(", ")}`);
}

function firstLine(text: string): string {
  return text.trim().split("\n")[0]?.slice(0, 200) ?? "";
}
