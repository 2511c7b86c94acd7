#!/bin/sh
# Gives clients' configurations back without Firedoor: when its programs, its engine or its database are gone.
#
#   sh restore.sh [--yes] [FILE…]
#
# Without a FILE: every file that Firedoor's journal names. A file that is still exactly what Firedoor wrote gets its saved
# original back; in every other one each protected entry is taken apart by its own text, and what else was changed stays.
# Secrets that were moved into the keychain stay there, and are named.
# Shows the difference and asks, unless --yes is given. What a client writes meanwhile is kept: it is worked out anew. Needs a POSIX shell and awk, nothing else.
set -u
LC_ALL=C
export LC_ALL

yes=
[ "${1:-}" = --yes ] && { yes=1; shift; }
backups="${XDG_STATE_HOME:-${HOME:?HOME is not set}/.local/state}/firedoor/backups"
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/was" || exit 2
failed=0

# The text behind a key of a journal record, which stands on a line of its own.
field() { sed -n 's/^  "'"$1"'": "\(.*\)",\{0,1\}$/\1/p' "$2" | sed 's/\\"/"/g; s/\\\\/\\/g' | head -n 1; }

digest() { { sha256sum "$1" 2>/dev/null || shasum -a 256 "$1"; } | cut -c 1-64; }

# Takes protected entries apart. Exit 0: done; 3: it has a form that this script does not know; 4: there is none.
take_apart() {
    case $1 in *.toml | *.yaml | *.yml) hash=1 ;; *) hash=0 ;; esac
    { cat "$1" && printf x; } | awk -v hash="$hash" '
    function fail(why) { print "  " why > "/dev/stderr"; failed = 1; exit 3 }
    function value(i,  t, q) {
        t = text[i]; q = substr(t, 1, 1)
        return (q == "\"" || q == "\047") ? substr(t, 2, length(t) - 2) : t
    }
    function shim(i) { return value(i) ~ /(^|[\/\\])firedoor-shim(\.exe)?$/ }
    function edit(from, to, new,  k) {
        for (k = ++edits; k > 1 && first[k - 1] > from; k--) {
            first[k] = first[k - 1]; last[k] = last[k - 1]; put[k] = put[k - 1]
        }
        first[k] = from; last[k] = to; put[k] = new
    }
    function token(from, to) { n++; begin[n] = from; end[n] = to; text[n] = substr(s, from, to - from); return to }
    # Behind the last sign of a string that begins here.
    function closed(i, q,  j, d) {
        if (hash && substr(s, i, 3) == q q q) {
            j = index(substr(s, i + 3), q q q)
            return j ? i + j + 5 : size + 1
        }
        for (j = i + 1; j <= size; j++) {
            d = substr(s, j, 1)
            if (d == "\\" && q == "\"") j++
            else if (d == q) { if (q == "\047" && substr(s, j + 1, 1) == q) j++; else return j + 1 }
        }
        return size + 1
    }
    function past(i, sign,  j) { j = index(substr(s, i), sign); return j ? i + j - 1 + length(sign) : size + 1 }
    # The end of what stands in a line of YAML behind a dash.
    function item_end(i,  t) {
        t = substr(s, begin[i]); sub(/[\r\n].*/, "", t)
        if (text[i] ~ /^["\047]/) return end[i]
        sub(/[ \t]+#.*/, "", t); sub(/[ \t]+$/, "", t)
        return begin[i] + length(t)
    }
    function quoted(i, new) { return text[i] ~ /^["\047]/ ? substr(text[i], 1, 1) new substr(text[i], 1, 1) : new }
    # The bracket that belongs to one.
    function partner(i,  j, depth) {
        for (j = i; j <= n; j++) {
            if (text[j] ~ /^[[{]$/) depth++
            else if (text[j] ~ /^[]}]$/ && --depth == 0) return j
        }
        fail("a bracket is not closed")
    }
    # An entry of JSON that reaches an address: the shim, and where its arguments begin.
    function remote(shim_at, from,  array, key, close_at, i, j, k, was, kind, names, parts, stop) {
        array = from == shim_at + 2
        key = array ? shim_at - 3 : shim_at - 2
        close_at = partner(array ? shim_at - 1 : from - 1)
        kind = 0
        for (i = from + 8; i < close_at; i += 4) {
            if (value(i) == "--was") was = value(i + 2)
            else if (value(i) == "--type") kind = i + 2
            else if (value(i) == "--header" && split(value(i + 2), parts, "=env:") == 2) names[parts[2]] = parts[1]
            else if (value(i) != "--transport") fail("an entry is not as Firedoor writes it")
        }
        if (!split(was, parts, ",") || text[key + 1] != ":") fail("an entry is not as Firedoor writes it")
        edit(begin[key], end[key], quoted(key, parts[1]))
        if (array) {
            edit(begin[shim_at - 1], end[close_at], text[from + 6])
        } else {
            edit(begin[shim_at], end[shim_at], text[from + 6])
            if (text[from - 4] == "," && substr(s, end[from - 5], begin[from - 3] - end[from - 5]) ~ /^[ \t\r\n]*,[ \t\r\n]*$/)
                edit(end[from - 5], end[close_at], "")
            else if (text[close_at + 1] == ",") edit(begin[from - 3], begin[close_at + 2], "")
            else fail("an entry is not as Firedoor writes it")
        }
        # The entry begins at the brace that no other closes before the key; its own members are one deep.
        for (i = key - 1; i > 0; i--) {
            if (text[i] ~ /^[]}]$/) k++
            else if (text[i] ~ /^[[{]$/ && k-- == 0) break
        }
        stop = partner(i)
        for (i++; i < stop; i++) {
            if (text[i] ~ /^[[{]$/) { i = partner(i); continue }
            if (text[i + 1] != ":") continue
            if (kind && value(i) ~ /^(type|transport)$/) edit(begin[i + 2], end[i + 2], text[kind])
            if (!(2 in parts) || value(i) !~ /^env(ironment)?$/ || text[i + 2] != "{") continue
            edit(begin[i], end[i], quoted(i, parts[2]))
            for (j = i + 3; j < partner(i + 2); j++) {
                if (text[j + 1] != ":") continue
                if (!(value(j) in names)) fail("the variable " value(j) " was added to it, and no header is called so")
                edit(begin[j], end[j], quoted(j, names[value(j)]))
                j += 2
            }
        }
    }
    # Whether a token is the first of its line, and how far in it stands.
    function line(p) { while (p > 1 && substr(s, p - 1, 1) != "\n") p--; return p }
    function leads(i) { return substr(s, line(begin[i]), begin[i] - line(begin[i])) ~ /^[ \t]*$/ }
    function column(i) { return begin[i] - line(begin[i]) }
    # The key in front of a sign or, in YAML, with its sign: where it ends without that, and its last part.
    function key_stop(i) { return text[i] ~ /^[^"\047].*:$/ ? end[i] - 1 : end[i] }
    function part(i, new,  t, q, k) {
        t = substr(s, begin[i], key_stop(i) - begin[i]); k = length(t); q = substr(t, k, 1)
        if (q == "\"" || q == "\047") {
            for (k--; k > 0 && substr(t, k, 1) != q; k--);
            last_part = substr(t, k + 1, length(t) - k - 1)
            if (new != "") edit(begin[i] + k, key_stop(i) - 1, new)
        } else {
            for (; k > 0 && substr(t, k, 1) != "."; k--);
            last_part = substr(t, k + 1)
            if (new != "") edit(begin[i] + k, key_stop(i), new)
        }
        return last_part
    }
    # What stands in front of a sign of TOML, without blanks.
    function path(sign,  i, t) {
        for (i = sign - 1; i > 1 && text[i - 1] !~ /^[][{},=]$/ && line(begin[i - 1]) == line(begin[i]); i--);
        t = substr(s, begin[i], end[sign - 1] - begin[i]); gsub(/[ \t]/, "", t)
        return t
    }
    function before_last(t) { return match(t, /(.*[.])/) ? substr(t, 1, RLENGTH) : "" }
    # A header of TOML: the path in it; header_key is its last part, header_end the bracket that closes it.
    function header(i,  j, t) {
        if (text[i] != "[" || !leads(i)) return ""
        for (j = i; text[j] == "["; j++);
        for (; j <= n && text[j] != "]"; j++) t = t text[j]
        header_list = text[i + 1] == "["; header_key = j - 1; header_end = header_list ? j + 1 : j
        return t
    }
    # Behind a header, or from the top, up to the next one.
    function table_end(i) { while (i <= n && header(i) == "") i++; return i - 1 }
    function named(i) {
        part(i)
        if (!(last_part in names)) fail("the variable " last_part " was added to it, and no header is called so")
        part(i, names[last_part]); headers--
    }
    # The variables between two tokens, each in front of a sign.
    function variables(from, to,  i, depth) {
        for (i = from; i <= to; i++) {
            if (text[i] ~ /^[[{]$/) depth++
            else if (text[i] ~ /^[]}]$/) depth--
            else if (!depth && i < to && text[i + 1] ~ /^[=:]$/) named(i)
            else if (!depth && text[i] ~ /^[^"\047].*:$/) named(i)
        }
    }
    # The members between two tokens, of TOML with this in front of their keys.
    function members(from, to, pre,  i, t, p, depth) {
        for (i = from; i <= to; i++) {
            if (text[i] ~ /^[[{]$/) depth++
            if (text[i] ~ /^[]}]$/) depth--
            if (depth || text[i + 1] != "=") continue
            t = path(i + 1); p = before_last(t)
            if (kind != "" && (t == pre "type" || t == pre "transport")) edit(begin[i + 2], end[i + 2], kind)
            if (t ~ /(^|[.])envs?$/ && p == pre && text[i + 2] == "{") {
                part(i, parts[2]); variables(i + 3, partner(i + 2) - 1)
            }
            if (p == pre "env." || p == pre "envs.") dotted(i)
        }
    }
    # A variable whose key names its map, too.
    function dotted(i,  t, k) {
        t = substr(s, begin[i], end[i] - begin[i])
        if (!match(t, /envs?[.][^.]*$/)) fail("an entry is not as Firedoor writes it")
        k = index(substr(t, RSTART), ".")
        edit(begin[i] + RSTART - 1, begin[i] + RSTART + k - 2, parts[2])
        named(i)
    }
    # An entry of TOML or YAML that reaches an address: the shim, and where its arguments begin.
    function hash_remote(shim_at, from,  close_at, i, k, first_of, count, eb, ee, ev, was, key, t, depth, open_at) {
        if (text[from - 1] != "[") fail("an entry is not as Firedoor writes it")
        close_at = partner(from - 1); count = 0; first_of = from; kind = ""; headers = 0
        for (i in names) delete names[i]
        for (i = from; i <= close_at; i++) {
            if (i < close_at && text[i] != ",") continue
            count++; eb[count] = begin[first_of]; ee[count] = end[i - 1]
            ev[count] = first_of == i - 1 ? value(first_of) : substr(s, eb[count], ee[count] - eb[count])
            first_of = i + 1
        }
        for (k = 5; k <= count; k += 2) {
            if (ev[k] == "--was") was = ev[k + 1]
            else if (ev[k] == "--type") kind = substr(s, eb[k + 1], ee[k + 1] - eb[k + 1])
            else if (ev[k] == "--header" && split(ev[k + 1], parts, "=env:") == 2) { names[parts[2]] = parts[1]; headers++ }
            else if (ev[k] != "--transport") fail("an entry is not as Firedoor writes it")
        }
        t = substr(s, end[shim_at], begin[from - 1] - end[shim_at])
        if (!split(was, parts, ",") || t !~ /^[ \t\r\n]*,?[ \t\r\n]*[^,#{}\r\n]+[=:][ \t]*$/) fail("an entry is not as Firedoor writes it")
        key = text[shim_at - 1] ~ /^[=:]$/ ? shim_at - 2 : shim_at - 1
        part(key, parts[1])
        edit(begin[shim_at], end[shim_at], substr(s, eb[4], ee[4] - eb[4]))
        edit(end[shim_at], end[close_at], "")
        # The brace around it, if there is one.
        for (open_at = key - 1; open_at > 0; open_at--) {
            if (text[open_at] ~ /^[]}]$/) depth++
            else if (text[open_at] ~ /^[[{]$/ && depth-- == 0) break
        }
        if (text[shim_at - 1] == "=") toml_members(shim_at, key, open_at)
        else yaml_members(key, open_at)
        if (headers) fail("its headers are gone from its variables")
    }
    # The rest of an entry of TOML: in its braces, or in its table and that of its headers.
    function toml_members(shim_at, key, open_at,  pre, h, hp, list, i, top, own, q, t, last) {
        pre = before_last(path(shim_at - 1))
        if (open_at) { members(open_at + 1, partner(open_at) - 1, pre); return }
        for (h = key; h > 0 && (hp = header(h)) == ""; h--);
        list = h && header_list; top = h ? header_end + 1 : 1
        own = table_end(top)
        members(top, own, pre)
        sub(/[.]$/, "", pre)
        q = hp (hp != "" && pre != "" ? "." : "") pre
        # Of a list the tables behind it, of another one all.
        for (i = list ? own + 1 : 1; i <= n; i++) {
            if ((t = header(i)) == "") continue
            if (list && t == hp) break
            if (t != q ".env" && t != q ".envs") continue
            part(header_key, parts[2])
            top = header_end + 1; last = table_end(top)
            variables(top, last)
        }
    }
    # The rest of an entry of YAML.
    function yaml_members(key, open_at,  i, k) {
        from_to(key, open_at)
        for (i = low; i <= high; i++) {
            if (open_at) { if (text[i] ~ /^[[{]$/) { i = partner(i); continue } }
            else if (column(i) != key_column || !(leads(i) || text[i - 1] == "-")) continue
            k = text[i + 1] == ":" ? i + 2 : i + 1
            if (k == i + 1 && text[i] !~ /^[^"\047].*:$/) continue
            part(i)
            if (kind != "" && last_part ~ /^(type|transport)$/) edit(begin[k], end[k], kind)
            if (!(2 in parts) || last_part !~ /^(envs?|environment)$/) continue
            part(i, parts[2])
            if (text[k] == "{") { variables(k + 1, partner(k) - 1); continue }
            for (; k <= high && column(k) > key_column; k++)
                if (leads(k) && (text[k + 1] == ":" || text[k] ~ /:$/)) named(k)
        }
    }
    # The tokens of an entry of YAML.
    function from_to(key, open_at,  i) {
        key_column = column(key)
        if (open_at) { low = open_at + 1; high = partner(open_at) - 1; return }
        for (low = key; low > 1; low--) {
            if (!leads(low - 1)) continue
            if (column(low - 1) < key_column) break
        }
        for (high = key; high < n; high++) if (leads(high + 1) && column(high + 1) < key_column) break
    }
    { s = s $0 "\n" }
    END {
        if (failed) exit 3
        s = substr(s, 1, length(s) - 2)
        # Entries that have an address of Firedoor in front of their own.
        addresses = gsub(/http:\/\/127\.0\.0\.1:[0-9]+\/[a-z0-9]+#firedoor:[^=" \t\r\n\047]+=/, "", s)
        size = length(s)
        for (i = 1; i <= size;) {
            c = substr(s, i, 1); before = i > 1 ? substr(s, i - 1, 1) : " "
            if (c ~ /[ \t\r\n]/) i++
            else if (!hash && substr(s, i, 2) == "//") i = past(i, "\n")
            else if (!hash && substr(s, i, 2) == "/*") i = past(i + 2, "*/")
            else if (hash && c == "#" && before !~ /[A-Za-z0-9]/) i = past(i, "\n")
            else if (c == "\"" || (c == "\047" && before !~ /[A-Za-z0-9]/)) i = token(i, closed(i, c))
            else if (c ~ /[][{},=:]/) i = token(i, i + 1)
            else {
                for (j = i; j <= size && substr(s, j, 1) !~ /[] \t\r\n[{},=]/; j++);
                i = token(i, j)
            }
        }
        for (i = 1; i <= n; i++) {
            if (shim(i)) { things++; what[things] = "s"; at[things] = i }
            if (value(i) == "--entry" && (text[i - 1] == "[" || text[i - 1] == "-" || shim(i - 2))) {
                things++; what[things] = "e"; at[things] = i
            }
        }
        if (!things && !addresses) exit 4
        for (k = 1; k <= things; k += 2) {
            if (what[k] == what[k + 1] || k == things) fail("the entries and their commands cannot be told apart")
            if (what[k] == "s") { command = at[k]; entry = at[k + 1] } else { command = at[k + 1]; entry = at[k] }
            step = 2; i = entry + 2 * step
            if (value(i) == "--url" && hash) { hash_remote(command, entry); continue }
            if (value(i) == "--url") { remote(command, entry); continue }
            bare = 0
            if (value(i) == "--no-args") { bare = 1; i += step }
            if (value(i) != "--" && value(i) != "--program") fail("an entry is not as Firedoor writes it")
            own = i + step
            if (own > n) fail("an entry ends early")
            if (text[entry - 1] == "-") {
                stop = item_end(own)
                edit(begin[command], end[command], substr(s, begin[own], stop - begin[own]))
                for (i = own; i <= n && begin[i] < stop; i++);
                more = i <= n && text[i] == "-"
                edit(begin[entry - 1], more ? begin[i] : stop, more ? "" : "[]")
            } else if (shim(entry - 2)) {
                edit(begin[command], begin[own], "")
            } else {
                edit(begin[command], end[command], text[own])
                if (bare && text[own + 1] == "]" && command < entry && entry - command < 9) {
                    edit(end[command], end[own + 1], "")
                } else {
                    edit(end[entry - 1], text[own + 1] == "," ? end[own + 1] : end[own], "")
                }
            }
        }
        from = 1
        for (k = 1; k <= edits; k++) { printf "%s%s", substr(s, from, first[k] - from), put[k]; from = last[k] }
        printf "%s", substr(s, from)
    }'
}

# Gives one file back: as its saved original says where it is what Firedoor wrote, by its own text otherwise.
restore() {
    file=$1 original=$2 wrote=$3
    [ -f "$file" ] || { echo "$file: no such file"; return; }
    [ -L "$file" ] && file=$(readlink -f "$file")
    tries=5
    until try; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ]; then
            echo "$file: another program keeps writing it; end that program first" >&2
            failed=1
            return
        fi
        echo "$file: another program has written it meanwhile; once more:" >&2
    done
}

# Fails only when the file was written by somebody else meanwhile.
try() {
    # Everything is worked out from one copy, with the file's own name, which says what it is.
    was="$scratch/was/${file##*/}"
    cp "$file" "$was" || { failed=1; return 0; }
    if [ -n "$original" ] && [ "$(digest "$was")" = "$wrote" ]; then
        cp "$original" "$scratch/new" || { failed=1; return 0; }
    else
        take_apart "$was" > "$scratch/new"
        case $? in
            0) ;;
            4) echo "$file: nothing is protected"; return 0 ;;
            *) echo "$file: left as it is" >&2; failed=1; return 0 ;;
        esac
    fi
    echo "$file:"
    diff -u "$was" "$scratch/new" | sed 1,2d
    secrets=$(sed -n 's/.*\(firedoor-secret:[^"]*\).*/  \1/p' "$scratch/new")
    if [ -n "$secrets" ]; then
        echo "$file: these secrets are in the keychain, from where only Firedoor can put them back; write them yourself:" >&2
        echo "$secrets" >&2
        failed=1
    fi
    if [ -z "$yes" ]; then
        printf 'Write it? [y/N] '
        read -r answer || answer=
        case $answer in y | Y | yes) ;; *) return 0 ;; esac
    fi
    # Beside it and then in its place, with its mode: a client never sees half a file.
    if ! { cp -p "$file" "$file.restored.$$" && cat "$scratch/new" > "$file.restored.$$"; }; then
        rm -f "$file.restored.$$"
        echo "$file: cannot be written; make it and its directory writable" >&2
        failed=1
    elif ! cmp -s "$file" "$was"; then
        rm -f "$file.restored.$$"
        return 1
    elif mv "$file.restored.$$" "$file"; then
        echo "$file: given back"
    else
        rm -f "$file.restored.$$"
        failed=1
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
