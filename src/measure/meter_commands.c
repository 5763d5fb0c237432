/* layer 3 (measure): rows of directions: the commands of upper protocols that they carry. */
#include "src/measure/meter.h"

#include "src/ulp/ulp.h"

/* The row of what the client or the server sends. */
static struct meter_row *row_of(struct meter *m, const struct ulp_command *c, bool server)
{
    static struct meter_row none;
    uint32_t flow = ulp_command_flow(c, server);

    if (c->stream)
        return meter_row_of_stream(m, c->conn, (c->stream == 1) != server);
    if (flow == FLOW_NONE)
        return &none;
    return meter_row_of(m, flow);
}

void meter_command(struct meter *m, const struct ulp_command *c)
{
    struct meter_row *client = row_of(m, c, false), *server = row_of(m, c, true),
                     *sender = c->by_server ? server : client;

    client->carries = server->carries = ulp_name(c->proto);
    sender->commands++;
    sender->commands_failed += c->ended == ULP_COMPLETED && c->failed;
    client->command_bytes += c->moved[ULP_FROM_CLIENT];
    server->command_bytes += c->moved[ULP_TO_CLIENT];
}
