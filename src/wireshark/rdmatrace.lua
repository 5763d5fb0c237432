-- What rdmatrace says of each packet, inside of Wireshark and tshark: fields rdmatrace.rule, rdmatrace.verdict, rdmatrace.headline (check), and
-- rdmatrace.cause, rdmatrace.text (explain), for filters and columns; and entries of the expert information.
--
--     tshark -X lua_script:rdmatrace.lua -X lua_script1:FILE -r FILE -Y rdmatrace.verdict
--
-- In Wireshark: Tools, rdmatrace, asks for the file, which Lua scripts are not told.

local proto = Proto("rdmatrace", "rdmatrace")

local rule = ProtoField.string("rdmatrace.rule", "Rule")
local verdict = ProtoField.string("rdmatrace.verdict", "Verdict")
local headline = ProtoField.string("rdmatrace.headline", "Headline")
local cause = ProtoField.string("rdmatrace.cause", "Cause")
local text = ProtoField.string("rdmatrace.text", "Text")
proto.fields = {rule, verdict, headline, cause, text}

local experts = {
    fail = ProtoExpert.new("rdmatrace.fail", "A rule of the transport is broken", expert.group.PROTOCOL, expert.severity.ERROR),
    inconclusive = ProtoExpert.new("rdmatrace.inconclusive", "A rule may be broken", expert.group.PROTOCOL, expert.severity.NOTE),
    incident = ProtoExpert.new("rdmatrace.incident", "What went wrong", expert.group.SEQUENCE, expert.severity.WARN),
}
proto.experts = {experts.fail, experts.inconclusive, experts.incident}

proto.prefs.file = Pref.string("Capture file", "", "The file that is open")
proto.prefs.program = Pref.string("Program", os.getenv("RDMATRACE") or "rdmatrace", "rdmatrace, with its path if needed")

local arguments = {...}
local said, said_of -- by frame: what is said; of which file

-- The value of a member that is a text; nil: it is null, or missing.
local function text_of(line, name)
    local _, at = line:find('"' .. name .. '":"', 1, true)
    if not at then
        return nil
    end
    local out, i = {}, at + 1
    while i <= #line and line:sub(i, i) ~= '"' do
        if line:sub(i, i) == "\\" and line:sub(i + 1, i + 1) ~= "u" then -- \uNNNN: a control character, which stays so
            i = i + 1
        end
        out[#out + 1] = line:sub(i, i)
        i = i + 1
    end
    return table.concat(out)
end

-- Keep a line for the frames in its list `name`.
local function keep(line, name, what)
    local frames = line:match('"' .. name .. '":%[([%d,]*)%]')
    for frame in (frames or ""):gmatch("%d+") do
        local n = tonumber(frame)
        said[n] = said[n] or {}
        table.insert(said[n], what)
    end
end

local function finding(line)
    local v = text_of(line, "verdict")
    if v then -- a note has none
        keep(line, "frames", {expert = v, rule = text_of(line, "rule"), verdict = v, headline = text_of(line, "headline")})
    end
end

local function incident(line)
    keep(line, "frame_list", {expert = "incident", cause = text_of(line, "cause"), text = text_of(line, "text")})
end

-- What to do if the shell does not find or cannot run the program.
local function say_missing()
    report_failure("rdmatrace.lua: no program '" .. proto.prefs.program .. "': put the directory of rdmatrace into PATH, or name the program by the variable RDMATRACE " ..
                   "or the preference rdmatrace.program (tshark -o rdmatrace.program:/usr/local/bin/rdmatrace)")
end

-- The lines of a command of rdmatrace. False if there is no such program.
local function read(command, file, type, take)
    local quoted = "'" .. file:gsub("'", "'\\''") .. "'"
    local pipe = io.popen(proto.prefs.program .. " " .. command .. " -T ndjson -- " .. quoted)
    if not pipe then
        return false
    end
    for line in pipe:lines() do
        if text_of(line, "type") == type then
            take(line)
        end
    end
    local _, _, status = pipe:close()
    return status ~= 126 and status ~= 127
end

local function load(file)
    if file == "" or said_of == file then
        return
    end
    said, said_of = {}, file
    if read("check", file, "finding", finding) then
        read("explain", file, "incident", incident)
    else
        say_missing()
    end
end

function proto.init()
    load(arguments[1] or proto.prefs.file)
end

function proto.dissector(buffer, pinfo, tree)
    local all = said and said[pinfo.number]
    for _, what in ipairs(all or {}) do
        local at = tree:add(proto, buffer(0, 0), "rdmatrace: " .. (what.rule or what.cause or ""))
        for field, value in pairs({[rule] = what.rule, [verdict] = what.verdict, [headline] = what.headline, [cause] = what.cause, [text] = what.text}) do
            at:add(field, value)
        end
        at:add_proto_expert_info(experts[what.expert], what.headline or what.text)
    end
end
register_postdissector(proto)

if gui_enabled() then
    register_menu("rdmatrace", function()
        new_dialog("Verdicts of rdmatrace", function(file)
            proto.prefs.file = file
            said_of = nil
            load(file)
            reload_packets()
        end, "Capture file that is open")
    end, MENU_TOOLS_UNSORTED)
end
