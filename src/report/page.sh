#!/bin/bash
# Make the page of `rdmatrace report` from its parts: page.sh DYGRAPHS-FOLDER > PAGE. The page may run the two scripts and apply the two
# styles that are in it, by their hashes, and load nothing. The data, which the program inserts in place of @DATA@, are no script.
set -euo pipefail
here=$(dirname "$0")
library=$1
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
: >"$parts/library.js" >"$parts/library.css"
if [ -e "$library/dygraph.min.js" ]; then # the source maps that it names are not there
    grep -v '^//# sourceMappingURL=' "$library/dygraph.min.js" >"$parts/library.js"
    sed 's|/\*# sourceMappingURL=.*\*/||' "$library/dygraph.min.css" >"$parts/library.css"
else
    echo "page.sh: no dygraphs in $library: pages of \`rdmatrace report\` will have tables in place of its figures" >&2
fi
cat "$here/tables.js" "$here/figures.js" "$here/svg.js" "$here/report.js" >"$parts/own.js"
cp "$here/report.css" "$parts/own.css"
if grep -qi '</script\|<!--' "$parts"/*.js || grep -qi '</style' "$parts"/*.css; then
    echo "page.sh: a script or style has an end tag in it" >&2
    exit 1
fi
hash() {
    # shellcheck disable=SC2059 # the format is the bytes of the hash
    printf "'sha256-%s'" "$(printf "$(sha256sum "$1" | cut -c1-64 | sed 's/../\\x&/g')" | base64)"
}
part() {
    printf '<%s>' "$1"
    cat "$2"
    printf '</%s>\n' "$1"
}
cat <<END
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src $(hash "$parts/library.js") $(hash "$parts/own.js"); style-src $(hash "$parts/library.css") $(hash "$parts/own.css"); img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rdmatrace report</title>
<link rel="icon" href="data:,">
END
part style "$parts/library.css"
part style "$parts/own.css"
cat "$here/body.html"
printf '<script type="application/json" id="data">@DATA@</script>\n'
printf '<!--\n%s\n-->\n' "$(cat "$here/dygraphs.txt")"
part script "$parts/library.js"
part script "$parts/own.js"
printf '</body>\n</html>\n'
