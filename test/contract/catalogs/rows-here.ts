import { type OpenCatalog, openWithRows } from "../../support/catalogs/rows-here.ts";
import { rowSuite } from "../suite.ts";
import { type CatalogCapabilities, type CatalogFixture, catalogSuite } from "./suite.ts";

/** Runs the contracts of catalogs and of rows over a gateway that serves the rows of a catalog's tables. */
export function suitesWithRows(
  name: string,
  { open, capabilities }: { open: OpenCatalog<CatalogFixture>; capabilities: CatalogCapabilities },
): void {
  const title = `${name} with rows served here`;
  catalogSuite(title, {
    open: () => openWithRows(open),
    capabilities: { ...capabilities, servesRows: true },
  });
  rowSuite(title, {
    open: () => openWithRows(open),
    capabilities: { changesProperties: false, addsProperties: true },
  });
}
