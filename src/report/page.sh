#!/bin/bash
# Make a page of `rdmatrace report`, which may run the scripts and apply the styles that are in it, by their hashes, and load nothing:
#   page.sh report DYGRAPHS-FOLDER NPM-FOLDER > PAGE  from its parts; the program inserts the data, which are no script, in place of @DATA@; if
#                                                     dygraphs is not there, npm installs it into NPM-FOLDER as the lock file here says
#   page.sh cards > PAGE                              likewise, for score cards of `rdmagen conformance`
#   page.sh tutorial MANUAL-PAGE > PAGE               a manual page, as mandoc writes it
set -euo pipefail
here=$(dirname "$0")
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
cp "$here/report.css" "$parts/own.css"
hash() {
    # shellcheck disable=SC2059 # the format is the bytes of the hash
    printf "'sha256-%s'" "$(printf "$(sha256sum "$1" | cut -c1-64 | sed 's/../\\x&/g')" | base64)"
}
part() {
    printf '<%s>' "$1"
    cat "$2"
    printf '</%s>\n' "$1"
}
# begin TITLE NAME...: the head of a page with these scripts and styles.
begin() {
    local title=$1 scripts=() styles=() name
    shift
    for name; do
        [ "${name##*.}" = js ] && scripts+=("$(hash "$parts/$name")") || styles+=("$(hash "$parts/$name")")
    done
    cat <<END
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${scripts[*]:-'none'}; style-src ${styles[*]}; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<link rel="icon" href="data:,">
END
    for name; do
        [ "${name##*.}" = js ] || part style "$parts/$name"
    done
}

# Refuse scripts and styles that would end where they should not.
check() {
    if grep -qi '</script\|<!--' "$parts"/*.js || grep -qi '</style' "$parts"/*.css; then
        echo "page.sh: a script or style has an end tag in it" >&2
        exit 1
    fi
}

report() {
    local library=$1 status=0
    if [ ! -e "$library/dygraph.min.js" ]; then
        echo "page.sh: no dygraphs in $library: asking npm" >&2
        "$here/../packaging/npm" "$here" "$2" >&2 || status=$?
        [ $status -eq 0 ] || [ $status -eq 77 ] || exit $status
        library=$2/node_modules/dygraphs/dist
    fi
    touch "$parts/library.js" "$parts/library.css"
    if [ -e "$library/dygraph.min.js" ]; then # the source maps that it names are not there
        grep -v '^//# sourceMappingURL=' "$library/dygraph.min.js" >"$parts/library.js"
        sed 's|/\*# sourceMappingURL=.*\*/||' "$library/dygraph.min.css" >"$parts/library.css"
    else
        echo "page.sh: no dygraphs: pages of \`rdmatrace report\` will have tables in place of its figures" >&2
    fi
    cat "$here/tables.js" "$here/figures.js" "$here/svg.js" "$here/report.js" >"$parts/own.js"
    check
    begin "rdmatrace report" library.js own.js library.css own.css
    cat "$here/body.html"
    printf '<script type="application/json" id="data">@DATA@</script>\n'
    printf '<!--\n%s\n-->\n' "$(cat "$here/dygraphs.txt")"
    part script "$parts/library.js"
    part script "$parts/own.js"
    printf '</body>\n</html>\n'
}

cards() {
    cat "$here/tables.js" "$here/cards.js" >"$parts/own.js"
    check
    begin "rdmagen conformance" own.js own.css
    cat "$here/cards.html"
    printf '<script type="application/json" id="data">@DATA@</script>\n'
    part script "$parts/own.js"
    printf '</body>\n</html>\n'
}

# The text between mandoc's header and footer; the page has the first heading, and no other manual page to lead to.
tutorial() {
    local deeper=
    mandoc -T html -O fragment,toc "$1" >"$parts/text"
    ! grep -q '<h1 class="Sh"' "$parts/text" || deeper='s|<(/?)h2|<\1h3|g; s|<(/?)h1|<\1h2|g;' # later versions begin with h2
    begin "RDMA on the wire" own.css
    printf '</head>\n<body class="manual">\n<header>\n<h1>RDMA on the wire</h1>\n</header>\n<main>\n'
    sed -n '/<div class="manual-text">/,/<table class="foot">/p' "$parts/text" |
        sed -E '$d; '"$deeper"' s|<a class="Xr"( href="[^"]*")?>([^<]*)</a>|<span class="Xr">\2</span>|g; s|<pre>|<pre tabindex="0">|g'
    printf '</main>\n</body>\n</html>\n'
}

"$@"
