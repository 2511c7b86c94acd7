#!/bin/sh
# Gives clients' configurations back without Firedoor: when its programs, its engine or its database are gone.
#
#   sh restore.sh [--yes] [--] [FILE…]
#
# Without a FILE: every file that Firedoor's journal names. A file that is still exactly what Firedoor wrote gets its saved
# original back; in every other one each protected entry is taken apart by its own text, and what else was changed stays.
# Secrets that were moved into the keychain stay there, and are named.
# Exit 0: done; 1: a file could not be given back, or nobody answered; 2: it was called wrongly, or there is no journal.
# Shows the difference and asks, unless --yes is given. What a client writes meanwhile is kept: it is worked out anew. Needs a POSIX shell and awk, nothing else.
set -u
LC_ALL=C
export LC_ALL

usage='usage: sh restore.sh [--yes] [--] [FILE...]'
wrong() { printf '%s: options stand before files, and there are no others\n%s\n' "$1" "$usage" | tr -d '\000-\011\013-\037\177' >&2; exit 2; }
yes=
while [ $# -gt 0 ]; do
    case $1 in
        --yes) yes=1 ;;
        --help | -h) printf '%s\n' "$usage"; exit 0 ;;
        --) shift; break ;;
        -*) wrong "$1" ;;
        # A slip behind a file is no file either.
        *) for more; do case $more in --) break ;; -*) wrong "$more" ;; esac; done; break ;;
    esac
    shift
done
backups="${XDG_STATE_HOME:-${HOME:?HOME is not set}/.local/state}/firedoor/backups"
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/was" "$scratch/original" || exit 2
failed=0

# The text behind a key of a journal record, which stands on a line of its own.
field() { sed -n 's/^  "'"$1"'": "\(.*\)",\{0,1\}$/\1/p' "$2" | sed 's/\\"/"/g; s/\\\\/\\/g' | head -n 1; }

digest() { { sha256sum "$1" 2>/dev/null || shasum -a 256 "$1"; } | cut -c 1-64; }

# A configuration may come from somebody else. What steers a terminal, or changes the order in which text is shown, is replaced
# by a "?": controls but line ends and tabs, C1 controls, what is invisible or turns the direction (U+00AD, 061C, 200B to 200F,
# 2028 to 202E, 2060 to 206F, FEFF, E0000 to E0FFF), and bytes that begin no character of UTF-8. To awk a byte is a character here.
visible() {
    tr '\000' '?' | awk '
    BEGIN {
        more = "[\200-\277]"
        two = "|[\302-\337]" more; three = "|\340[\240-\277]" more "|[\341-\357]" more more
        four = "|\360[\220-\277]" more more "|[\361-\363]" more more more "|\364[\200-\217]" more more
        text = "^([\001-\177]" two three four ")+"
    }
    {
        gsub(/[\001-\010\013-\037\177]/, "?")
        gsub(/\302[\200-\237\255]|\330\234|\342\200[\213-\217\250-\256]|\342\201[\240-\257]|\357\273\277|\363\240[\200-\277][\200-\277]/, "?")
        out = ""; rest = $0
        for (bad = 0; rest != ""; bad++) {
            if (match(rest, text)) { out = out substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1) }
            if (rest == "") break
            # One by one, but not for ever.
            if (bad > 1000) gsub(/[\200-\377]/, "?", rest)
            else { out = out "?"; rest = substr(rest, 2) }
        }
        print out rest
    }'
}

# Takes protected entries apart. Exit 0: done; 3: nothing can be; 4: there is none; 5: done but for those that it names.
take_apart() {
    case $1 in *.toml) syntax=toml ;; *.yaml | *.yml) syntax=yaml ;; *) syntax=json ;; esac
    { cat "$1" && printf x; } | awk -v syntax="$syntax" '
    # The file is read into maps and lists. Of each part of one there is known where it begins and stops, in a map also where
    # its key stands; "opened" are those that have not ended, the file itself (0) below all.
    function part(m, from) {
        slot[deep] = ++parts[m]; into[deep] = m; waiting[deep] = 1
        begin[m, parts[m]] = stop[m, parts[m]] = from
    }
    function braces() { return deep && style[opened[deep]] == "braces" }
    function waits() { return waiting[deep] || (is[opened[deep]] == "list" && (braces() || !deep)) }
    function bare(t) { return t ~ /^["\047]/ ? substr(t, 2, length(t) - 2) : t }
    function key(m, whole, from, to) {
        part(m, to)
        key_at[m, parts[m]] = whole; key_last[m, parts[m]] = from; key_end[m, parts[m]] = to
        key_name[m, parts[m]] = bare(substr(s, from, to - from))
    }
    function value(from, to, node,  m, k) {
        if (!waiting[deep] && waits()) part(opened[deep], from)
        m = into[deep]; k = slot[deep]
        # More of what stands there: a word on several lines.
        if (!waiting[deep]) { stop[m, k] = to; return }
        waiting[deep] = 0; begin[m, k] = from; stop[m, k] = to; child[m, k] = node
        if (node) known(m, k, node)
    }
    # A map or list under its name, and the key that names it: in TOML there may be several.
    function known(m, k, node) {
        if (!((m, k) in key_at)) return
        under[m, key_name[m, k]] = node; called[node] = key_name[m, k]
        names[node]++; name_from[node, names[node]] = key_last[m, k]; name_to[node, names[node]] = key_end[m, k]
    }
    function begins(kind, how, at, column) {
        value(at, at, ++nodes)
        is[nodes] = kind; style[nodes] = how
        opened[++deep] = nodes; columns[deep] = column; waiting[deep] = 0
    }
    function ends(to) { if (deep--) stop[into[deep], slot[deep]] = to; else { deep = 0; broken = "a bracket is not closed" } }
    # What is left of the line of a place.
    function rest(i,  t) {
        while (line < lines && start[line + 1] <= i) line++
        while (start[line] > i) line--
        t = substr(s, i, start[line + 1] - 1 - i); sub(/\r$/, "", t)
        return t
    }
    function leads(i) { rest(i); return substr(s, start[line], i - start[line]) ~ /^[ \t]*$/ }
    function past(i, sign,  j) { j = index(substr(s, i), sign); return j ? i + j - 1 + length(sign) : size + 1 }
    # Behind the last sign of a string that begins here.
    function closed(i, q,  j, d, three) {
        three = syntax == "toml" && substr(s, i, 3) == q q q
        for (j = i + (three ? 3 : 1); j <= size; j++) {
            d = substr(s, j, 1)
            if (d == "\\" && (q == "\"" || syntax == "json")) j++
            else if (three && substr(s, j, 3) == q q q) { for (j += 3; substr(s, j, 1) == q; j++); return j }
            else if (!three && d == q) { if (q == "\047" && syntax == "yaml" && substr(s, j + 1, 1) == q) j++; else return j + 1 }
        }
        broken = "a string is not closed"
        return size + 1
    }
    # What stands between brackets, in any syntax: reads one token, and says where the next may begin.
    function between(i, c,  to) {
        if (c ~ /[[{]/) { begins(c == "[" ? "list" : "map", "braces", i); return i + 1 }
        if (c ~ /[]}]/) {
            if ((is[opened[deep]] == "list") != (c == "]")) broken = "a bracket is not closed"
            ends(i + 1); return i + 1
        }
        if (c == ",") { if (is[opened[deep]] == "map") waiting[deep] = 0; return i + 1 }
        if (c ~ /[:=]/ && (syntax != "yaml" || c == ":")) return i + 1
        if (syntax == "yaml" && c ~ /[&!]/) { match(rest(i), /^[^] \t,}]+/); return i + RLENGTH }
        if (syntax == "toml" && is[opened[deep]] == "map" && !waiting[deep]) return dotted(i, opened[deep])
        to = c ~ /["\047]/ ? closed(i, c) : syntax == "yaml" ? plain(i) : word(i)
        if (is[opened[deep]] == "map" && !waiting[deep]) key(opened[deep], i, i, to)
        else value(i, to)
        return to
    }
    # The end of a word, looked for a little at a time: a file may be one line.
    function word(i,  signs, to) {
        signs = syntax == "json" ? "^[^][ \t\r\n{},:\"/]+" : "^[^][ \t\r\n{},=#]+"
        for (to = i; match(substr(s, to, 64), signs); to += RLENGTH);
        return to > i ? to : i + 1
    }
    # The end of a plain word between brackets of YAML, which may have blanks and line ends in it.
    function plain(i,  j, d) {
        for (j = i; j <= size; j++) {
            d = substr(s, j, 1)
            if (d ~ /[][{},]/ || (d == ":" && substr(s, j + 1, 1) ~ /[] \t\r\n[{},]/)) break
            if (d == "#" && substr(s, j - 1, 1) ~ /[ \t\n]/) break
        }
        while (j > i + 1 && substr(s, j - 1, 1) ~ /[ \t\r\n]/) j--
        return j > i ? j : i + 1
    }
    function json(i, c) {
        if (c == "/" && substr(s, i + 1, 1) == "/") return i + length(rest(i))
        if (c == "/" && substr(s, i + 1, 1) == "*") return past(i + 2, "*/")
        return between(i, c)
    }
    function toml(i, c,  r) {
        r = rest(i)
        if (c == "#") return i + length(r)
        if (deep) return between(i, c)
        if (c == "=" && waiting[0]) return i + 1
        if (waiting[0] && c ~ /[[{]/) return between(i, c)
        if (!waiting[0] && leads(i)) return c == "[" ? header(i, r) : dotted(i, section)
        c = c ~ /["\047]/ ? closed(i, c) : word(i)
        value(i, c)
        return c
    }
    # A key of TOML, whose parts but the last name maps.
    function dotted(i, m,  at, c, to) {
        for (at = i;; i = to) {
            while (substr(s, i, 1) ~ /[. \t]/) i++
            c = substr(s, i, 1)
            to = c ~ /["\047]/ ? closed(i, c) : i + (match(rest(i), /^[^] \t.=,}]+/) ? RLENGTH : 1)
            if (rest(to) !~ /^[ \t]*[.]/) break
            m = inside(m, at, i, to, "map")
        }
        key(m, at, i, to)
        return to
    }
    # The map or list of that name, made where there is none; of a list of tables the last.
    function inside(m, at, from, to, kind,  node) {
        key(m, at, from, to); waiting[deep] = 0
        node = under[m, key_name[m, parts[m]]]
        if (!node) { node = ++nodes; is[node] = kind; style[node] = style[m]; child[m, parts[m]] = node; known(m, parts[m], node) }
        else { known(m, parts[m], node); parts[m]-- }
        return is[node] == "list" && kind == "map" ? child[node, parts[node]] : node
    }
    function header(i, r,  to, m, k) {
        list_of = r ~ /^\[\[/
        to = dotted(i + 1 + list_of, 0)
        # The last part names a map, too.
        m = into[deep]; k = parts[m]--; waiting[deep] = 0
        section = inside(m, key_at[m, k], key_last[m, k], key_end[m, k], list_of ? "list" : "map")
        if (list_of) {
            m = section; section = ++nodes; is[section] = "map"; style[section] = "lines"; called[section] = called[m]
            child[m, ++parts[m]] = section
        }
        while (substr(s, to, 1) ~ /[] \t]/) to++
        return to
    }
    function yaml(i, c,  r, column, dash, t, to, colon) {
        r = rest(i); column = i - start[line]
        if (c == "#" && (column == 0 || substr(s, i - 1, 1) ~ /[ \t]/)) return i + length(r)
        if (braces()) return between(i, c)
        dash = r ~ /^-([ \t]|$)/
        if (leads(i)) {
            if (column == 0 && r ~ /^(---|[.][.][.])([ \t]|$)/) return i + 3
            if (column == 0 && c == "%") return i + length(r)
            while (deep && (columns[deep] > column || (columns[deep] == column && is[opened[deep]] == "list" && !dash))) ends(ended)
        }
        if (dash && !(deep && is[opened[deep]] == "list" && columns[deep] == column) && waits()) begins("list", "block", i, column)
        if (dash && is[opened[deep]] == "list" && columns[deep] == column) {
            part(opened[deep], i + 1); dash_at[opened[deep], parts[opened[deep]]] = i; ended = i + 1
            return i + 1
        }
        if (c ~ /[[{]/ && waits()) return between(i, c)
        if (c ~ /[&!]/ && waits()) { match(r, /^[^ \t]+/); return i + RLENGTH }
        if (r ~ /^[|>][-+0-9]*[ \t]*(#.*)?$/ && waits()) return literal(i)
        if (c ~ /["\047]/ && (waits() || columns[deep] == column)) {
            to = closed(i, c); r = rest(to)
            colon = match(r, /^[ \t]*:([ \t]|$)/) ? to + index(r, ":") : 0
        } else {
            t = r; if (match(t, /[ \t]#/)) t = substr(t, 1, RSTART - 1)
            colon = match(t, /:([ \t]|$)/) ? i + RSTART : 0
            if (colon) t = substr(t, 1, RSTART - 1)
            sub(/[ \t]+$/, "", t); to = i + length(t)
        }
        ended = colon ? colon : to
        if (colon && !(is[opened[deep]] == "map" && columns[deep] == column) && waits()) begins("map", "block", i, column)
        if (colon && is[opened[deep]] == "map" && columns[deep] == column) key(opened[deep], i, i, to)
        else value(i, ended)
        return ended
    }
    # A text on lines of its own, further in than what it belongs to.
    function literal(i,  j, t) {
        ended = i + length(rest(i))
        for (j = line + 1; j <= lines; j++) {
            t = substr(s, start[j], start[j + 1] - 1 - start[j])
            if (t ~ /^[ \t\r]*$/) continue
            if (match(t, /^ */) && RLENGTH <= (deep ? columns[deep] : -1)) break
            ended = start[j] + length(t)
        }
        value(i, ended)
        return ended
    }
    function parse(i, c) {
        deep = nodes = section = opened[0] = 0
        is[0] = syntax == "toml" ? "map" : "list"; style[0] = "lines"; columns[0] = -1; line = 1
        if (substr(s, 1, 3) == "\357\273\277") start[1] = 4
        for (i = start[1]; i <= size && broken == "";) {
            c = substr(s, i, 1)
            if (c ~ /[ \t\r\n]/) i++
            else i = syntax == "json" ? json(i, c) : syntax == "toml" ? toml(i, c) : yaml(i, c)
        }
        while (deep && !braces()) ends(ended)
        if (deep) broken = "a bracket is not closed"
    }
    # What stands at a part: as it is written, and without its quotes.
    function raw(m, k) { return substr(s, begin[m, k], stop[m, k] - begin[m, k]) }
    function says(m, k) { return bare(raw(m, k)) }
    function shim(m, k) { return !child[m, k] && says(m, k) ~ /(^|[\/\\])firedoor-shim([.]exe)?$/ }
    # The edits of one entry count only when all of it is known.
    function edit(from, to, new) { first[++edits] = from; last[edits] = to; put[edits] = new }
    function cut(from, to) { edit(from, to, "") }
    function refuse(why) { if (problem == "") problem = why; return 0 }
    # From here on as clients/src/wrap.rs has it, function by function.
    function unwrap(m, c, a,  l, at, own, next_of, no_args) {
        l = child[m, a]; at = c == a ? 1 : 0
        if (says(l, at + 1) == "--entry") id = says(l, at + 2)
        if (says(l, at + 3) == "--url") return reached(m, c, a, l, at)
        if (syntax == "yaml" && substr(s, key_end[m, a], stop[m, a] - key_end[m, a]) ~ /(^|[ \t\r\n:[,-])[&*][A-Za-z0-9]/)
            return refuse("it has an anchor or an alias of YAML")
        no_args = says(l, at + 3) == "--no-args"
        own = at + 4 + no_args
        if (says(l, at + 1) != "--entry" || says(l, own - 1) !~ /^--(program)?$/) return refuse("it is not as Firedoor writes it")
        if (own > parts[l] || child[l, own]) return refuse("its command is gone from its arguments")
        if (c == a) { cut(begin[l, 1], begin[l, own]); return 1 }
        edit(begin[m, c], stop[m, c], raw(l, own))
        next_of = own < parts[l] ? own + 1 : 0
        if (no_args && !next_of) without(m, c, a)
        else if (style[l] != "block") prefix(m, a, l, own, next_of)
        else if (next_of) cut(dash_at[l, 1], dash_at[l, next_of])
        # Lines with a dash cannot be none.
        else edit(key_end[m, a], stop[m, a], ": []")
        return 1
    }
    function blank(from, to) { return substr(s, from, to - from) ~ /^[ \t\r\n]*$/ }
    # The part of the list from its bracket to the comma behind the original command.
    function prefix(m, a, l, own, next_of,  from, to, open_at, close_at) {
        open_at = begin[m, a] + 1; close_at = stop[m, a] - 1
        # A comment that somebody has put in front stays.
        from = blank(open_at, begin[l, 1]) ? open_at : begin[l, 1]
        to = comma(stop[l, own], next_of ? begin[l, next_of] : close_at)
        to = to ? to + 1 : stop[l, own]
        if (!next_of && begin[l, 1] > open_at && from == open_at && blank(to, close_at)) cut(open_at, close_at)
        else cut(from, to)
    }
    # The comma between two places, past comments.
    function comma(from, to,  i, c) {
        for (i = from; i < to; i++) {
            c = substr(s, i, 1)
            if (c == ",") return i
            if (c == "#" || substr(s, i, 2) == "//") i += length(rest(i)) - 1
            else if (substr(s, i, 2) == "/*") i = past(i + 2, "*/") - 1
        }
        return 0
    }
    function without(m, c, at) { if (style[m] == "braces") without_member(m, at); else without_lines(m, stop[m, c], at) }
    # Cuts a member on lines of its own.
    function without_lines(m, command, at,  from, to) {
        to = stop[m, at]; rest(key_at[m, at]); from = start[line]
        # As Firedoor has written it: on the line behind the command.
        if (command < from && substr(s, command, from - command) ~ /^\r?\n$/) { cut(command, to); return }
        # Behind the dash of a list the next key takes its place.
        if (style[m] == "block" && at < parts[m] && !blank(from, key_at[m, at])) {
            cut(key_at[m, at], key_at[m, at + 1])
            return
        }
        # A comment behind it stays.
        if (rest(to) ~ /^[ \t]*$/) to = start[line + 1] > size ? size + 1 : start[line + 1]
        cut(from, to)
    }
    function plainly(from, to) { return substr(s, from, to - from) ~ /^[, \t\r\n]*$/ }
    # Cuts a member and one comma.
    function without_member(m, at,  i) {
        if (at > 1) {
            if (plainly(stop[m, at - 1], key_at[m, at])) { cut(stop[m, at - 1], stop[m, at]); return }
            if (i = comma(stop[m, at - 1], key_at[m, at])) cut(i, i + 1)
            cut(key_at[m, at], stop[m, at])
        } else if (at == parts[m]) cut(key_at[m, at], stop[m, at])
        else if (plainly(stop[m, at], key_at[m, at + 1])) cut(key_at[m, at], key_at[m, at + 1])
        else cut(key_at[m, at], (i = comma(stop[m, at], key_at[m, at + 1])) ? i + 1 : stop[m, at])
    }
    # An entry that reaches an address: as clients/src/remote.rs has it.
    function reached(m, c, a, l, at,  k, was, own, kind, vars, pair, header_of) {
        remote = 1
        for (k = at + 5; k <= parts[l]; k += 2) {
            if (says(l, k) == "--was") was = says(l, k + 1)
            else if (says(l, k) == "--type") kind = k + 1
            else if (says(l, k) == "--header" && split(says(l, k + 1), pair, "=env:") == 2) header_of[pair[2]] = pair[1]
            else if (says(l, k) != "--transport") return refuse("it is not as Firedoor writes it")
        }
        if (k != parts[l] + 1 || !split(was, own, ",")) return refuse("it is not as Firedoor writes it")
        rename(key_last[m, c], key_end[m, c], own[1])
        edit(begin[m, c], stop[m, c], raw(l, at + 4))
        if (c != a) without(m, c, a)
        if (!(k = member(m, "type"))) k = member(m, "transport")
        if (k && kind) edit(begin[m, k], stop[m, k], raw(l, kind))
        if (!(2 in own)) return 1
        vars = under[m, c == a ? "environment" : member(m, "env") ? "env" : "envs"]
        if (!vars || is[vars] != "map") return refuse("its headers are gone from its variables")
        for (k = 1; k <= names[vars]; k++) rename(name_from[vars, k], name_to[vars, k], own[2])
        for (k = 1; k <= parts[vars]; k++) {
            was = key_name[vars, k]
            if (!(was in header_of)) return refuse("the variable " was " was added to it, and no header is called so")
            rename(key_last[vars, k], key_end[vars, k], header_of[was])
        }
        return 1
    }
    function member(m, name,  k) { for (k = parts[m]; k > 0 && key_name[m, k] != name; k--); return k }
    # A key, in the quotes that it stands in.
    function rename(from, to, new,  q) {
        q = substr(s, from, 1)
        edit(from, to, q ~ /["\047]/ ? q new q : new)
    }
    # A map that starts the shim, or has its arguments.
    function entry(m,  k, l, c, a) {
        for (k = 1; k <= parts[m]; k++) {
            l = child[m, k]
            if (shim(m, k)) c = k
            else if (l && is[l] == "list" && parts[l] && says(l, 1) == "--entry" && says(l, 2) ~ /^[^\/]+\/[^\/]+\//) a = k
            else if (l && is[l] == "list" && parts[l] && shim(l, 1)) c = a = k
        }
        if (!c && !a) return
        id = called[m]; remote = 0; problem = ""; k = edits
        if (!a) refuse("it starts the shim, but has no arguments of it")
        else if (!c) { id = says(child[m, a], 2); refuse("it has the arguments of the shim, but does not start it") }
        else unwrap(m, c, a)
        if (problem == "") { done++; return }
        edits = k
        leave(begin[m, c ? c : a])
    }
    function leave(at) {
        left++; rest(at)
        print "  " id " (line " line "): " problem > "/dev/stderr"
        print "    write it yourself: its " (remote ? "address stands behind --url" : "command stands behind -- or --program") \
            ", and docs/user-guide.md says more (Restore by hand)" > "/dev/stderr"
    }
    # The shim somewhere else, such as behind a program that starts it.
    function stray(l,  k) {
        for (k = 2; k <= parts[l]; k++) if (shim(l, k)) {
            id = "?"; remote = 0; problem = "the shim stands in a list, but does not begin it"
            leave(begin[l, k])
        }
    }
    # Writes the text with its edits, which do not overlap.
    function splice(  i, k, f, l, p, from) {
        for (i = 2; i <= edits; i++) {
            f = first[i]; l = last[i]; p = put[i]
            for (k = i; k > 1 && first[k - 1] > f; k--) { first[k] = first[k - 1]; last[k] = last[k - 1]; put[k] = put[k - 1] }
            first[k] = f; last[k] = l; put[k] = p
        }
        from = 1
        for (k = 1; k <= edits; k++) { printf "%s%s", substr(s, from, first[k] - from), put[k]; from = last[k] }
        printf "%s", substr(s, from)
    }
    # Not line by line: each time all of it would be copied.
    { more = more $0 "\n"; if (length(more) > 60000) { s = s more; more = "" } }
    END {
        s = s more; s = substr(s, 1, length(s) - 2)
        # Entries that have an address of Firedoor in front of their own.
        done = gsub(/http:\/\/127\.0\.0\.1:[0-9]+\/[a-z0-9]+#firedoor:[^=" \t\r\n\047]+=/, "", s)
        size = length(s)
        lines = split(s, texts, "\n"); start[1] = 1
        for (k = 1; k <= lines; k++) start[k + 1] = start[k] + length(texts[k]) + 1
        parse()
        if (broken != "") { print "  it cannot be read: " broken > "/dev/stderr"; exit 3 }
        for (m = 0; m <= nodes; m++) { if (is[m] == "map") entry(m); else if (m) stray(m) }
        if (!done) exit (left ? 3 : 4)
        splice()
        if (left) exit 5
    }'
}

# Gives one file back: as its saved original says where it is what Firedoor wrote, by its own text otherwise.
restore() {
    file=$1 original=$2 wrote=$3
    name=$(printf '%s' "$file" | tr '\n\t' '??' | visible)
    case $file in -*) file=./$file ;; esac
    if [ ! -f "$file" ]; then
        # What a journal names may have gone with its client.
        if [ -n "$wrote" ]; then say "no such file"; else fail "no such file"; fi
        return
    fi
    [ -L "$file" ] && file=$(readlink -f "$file")
    tries=5
    until try; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ]; then
            fail "another program keeps writing it; end that program first"
            return
        fi
        say "another program has written it meanwhile; once more:" >&2
    done
}

say() { printf '%s: %s\n' "$name" "$1"; }
fail() { say "$1" >&2; failed=1; }

# The names of secrets that are in the keychain.
references() {
    awk '{
        while (match($0, /firedoor-secret:[^] \t",}\047]+/)) {
            print "  " substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
        }
    }' "$1"
}

# Whether a saved original is one: nothing in it starts Firedoor.
clean() {
    grep -q -e firedoor-shim -e '#firedoor:' "$1" || return 0
    take_apart "$1" > /dev/null 2>&1
    [ $? = 4 ]
}

# Fails only when the file was written by somebody else meanwhile.
try() {
    # Everything is worked out from one copy, with the file's own name, which says what it is.
    was="$scratch/was/${file##*/}"
    cp "$file" "$was" 2>/dev/null || { fail "cannot be read"; return 0; }
    saved=
    if [ -n "$original" ] && [ "$(digest "$was")" = "$wrote" ]; then
        saved="$scratch/original/${file##*/}"
        cp "$original" "$saved" 2>/dev/null || { fail "its saved original cannot be read"; return 0; }
        clean "$saved" || saved=
    fi
    if [ -n "$saved" ]; then
        cp "$saved" "$scratch/new" || { fail "its saved original cannot be copied"; return 0; }
    else
        take_apart "$was" > "$scratch/new" 2> "$scratch/why"
        taken=$?
        visible < "$scratch/why" >&2
        case $taken in
            0) ;;
            4) say "nothing is protected"; return 0 ;;
            5) fail "these entries are left as they are, all others can be given back" ;;
            *) fail "left as it is"; return 0 ;;
        esac
    fi
    printf '%s:\n' "$name"
    diff -u "$was" "$scratch/new" | sed 1,2d | visible
    references "$scratch/new" > "$scratch/secrets"
    if [ -s "$scratch/secrets" ]; then
        fail "these secrets are in the keychain, from where only Firedoor can put them back; write them yourself:"
        visible < "$scratch/secrets" >&2
    fi
    if [ -z "$yes" ]; then
        printf 'Write it? [y/N] '
        # At the end of the input there is none.
        if ! read -r answer && [ -z "$answer" ]; then
            printf '\n'
            fail "not restored: nobody answered (--yes does not ask)"
            return 0
        fi
        case $answer in y | Y | yes) ;; *) return 0 ;; esac
    fi
    # Beside it and then in its place, with its mode: a client never sees half a file.
    # Under a name that nobody can have put there as a link to something else.
    if ! { new=$(mktemp "$file.restored.XXXXXX") && cp -p "$file" "$new" && cat "$scratch/new" > "$new"; } 2>/dev/null; then
        [ -z "$new" ] || rm -f "$new"
        fail "cannot be written; make it and its directory writable"
    elif ! cmp -s "$file" "$was"; then
        rm -f "$new"
        return 1
    elif mv "$new" "$file" 2>/dev/null; then
        say "given back"
    else
        rm -f "$new"
        fail "cannot be replaced; make its directory writable"
    fi
    return 0
}

if [ $# -gt 0 ]; then
    for file; do restore "$file" "" ""; done
else
    for record in "$backups"/*.json; do
        [ -f "$record" ] || { echo "there is no journal in $backups: name the files" >&2; exit 2; }
        target=$(field target "$record")
        original="$backups/$(field original "$record").orig"
        [ -f "$original" ] || original=
        restore "$target" "$original" "$(field wrote "$record")"
    done
fi
exit "$failed"
