import {
  autocompletion,
  type CompletionSource,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  startCompletion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import {
  keywordCompletionSource,
  PostgreSQL,
  type SQLNamespace,
  StandardSQL,
  schemaCompletionSource,
} from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, LanguageSupport, syntaxHighlighting } from "@codemirror/language";
import { Compartment } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

/** Names that are completed. */
export interface Names {
  /** Tables below their namespaces, and columns behind a dot. */
  readonly tables: SQLNamespace;
  /** Columns of the tables that the statement names. */
  readonly columns: readonly string[];
}

interface EditorProps {
  /** Text that the editor begins with; another object replaces what has been typed. */
  readonly opened: { readonly text: string };
  readonly label: string;
  readonly names: Names;
  onChange(text: string): void;
  /** Called for Ctrl-Enter, or Command-Enter. */
  onRun(): void;
}

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--group-3)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--group-2)" },
  { tag: tags.typeName, color: "var(--group-4)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
]);

const LOOK = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--panel)", fontSize: "0.95rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-content": { fontFamily: "var(--mono)", minHeight: "7.5em", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { color: "var(--muted)", backgroundColor: "var(--raised)", border: "none" },
  ".cm-scroller": { maxHeight: "45vh", overflow: "auto" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-back)",
  },
  ".cm-tooltip": { color: "var(--text)", backgroundColor: "var(--panel)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
  },
  ".cm-placeholder": { color: "var(--muted)" },
});

const completeKeywords = keywordCompletionSource(StandardSQL, true);

/** Completes keywords, except behind a dot, where a name follows. */
const keywords: CompletionSource = (context) =>
  context.matchBefore(/\.\w*/) === null ? completeKeywords(context) : null;

/** Completes columns without the names of their tables. */
function columnSource(columns: readonly string[]): CompletionSource {
  const options = columns.map((label) => ({ label, type: "property" }));
  return (context) => {
    const word = context.matchBefore(/\w+/);
    if (word === null || context.matchBefore(/[."']\w*/) !== null) return null;
    return { from: word.from, options, validFor: /^\w*$/ };
  };
}

/** Returns the language, which is closest to that of DuckDB, with its completions. */
function languageOf({ tables: schema, columns }: Names): LanguageSupport {
  const { language } = PostgreSQL;
  const sources = [schemaCompletionSource({ dialect: PostgreSQL, schema }), columnSource(columns), keywords];
  return new LanguageSupport(
    language,
    sources.map((autocomplete) => language.data.of({ autocomplete })),
  );
}

/** An editor for SQL. Its styles are in a shadow root: the policy of the page forbids those that a script writes into the document. */
export function Editor({ opened, label, names, onChange, onRun }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const completion = useRef(new Compartment());
  const latest = useRef({ onChange, onRun });
  latest.current = { onChange, onRun };
  useEffect(() => {
    const root = host.current?.shadowRoot ?? host.current?.attachShadow({ mode: "open" });
    if (root == null) return;
    const run = () => {
      latest.current.onRun();
      return true;
    };
    const created = new EditorView({
      doc: opened.text,
      root,
      parent: root,
      extensions: [
        keymap.of([{ key: "Mod-Enter", run }]),
        ...[lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), autocompletion()],
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
        completion.current.of(languageOf(names)),
        ...[syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping],
        placeholder("SELECT * FROM team.people LIMIT 10"),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) latest.current.onChange(state.doc.toString());
        }),
      ],
    });
    view.current = created;
    created.focus();
    return () => created.destroy();
  }, []);
  useEffect(() => {
    const { current } = view;
    if (current === undefined) return;
    current.dispatch({ effects: completion.current.reconfigure(languageOf(names)) });
    const { state, hasFocus } = current;
    const { head } = state.selection.main;
    // Columns that have arrived are for the name that is being typed.
    if (hasFocus && /\.\w*$/.test(state.sliceDoc(Math.max(0, head - 80), head))) startCompletion(current);
  }, [names]);
  useEffect(() => {
    const { current } = view;
    if (current === undefined || current.state.doc.toString() === opened.text) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: opened.text } });
  }, [opened]);
  return <div ref={host} class="sql-editor" />;
}
