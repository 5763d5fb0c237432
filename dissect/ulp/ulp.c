/* layer 1 (wire): what the dissectors of upper protocols share. */
#include "dissect/ulp/ulp.h"

#include "dissect/dissectors.h"

/* Layers that upper protocols leave free for the marks of a first pass. */
#define MARKS_FREE 4

void ulp_layer(struct pkt *p, const struct hdr *hdr, const struct ulp_body *m, uint32_t off, uint32_t len)
{
    if (!p || off >= m->len || !len || p->n_layers >= PKT_LAYERS - MARKS_FREE)
        return;
    p->layers[p->n_layers++] = (struct layer){.hdr = hdr, .off = m->off + off, .len = min_u32(len, m->len - off)};
}

/* Of Linux, whatever the machine is that reads the capture: asm-generic/errno.h. */
static const struct vname errors[] = {
    {1, "EPERM"},         {2, "ENOENT"},         {4, "EINTR"},          {5, "EIO"},
    {6, "ENXIO"},         {7, "E2BIG"},          {9, "EBADF"},          {11, "EAGAIN"},
    {12, "ENOMEM"},       {13, "EACCES"},        {14, "EFAULT"},        {16, "EBUSY"},
    {17, "EEXIST"},       {19, "ENODEV"},        {20, "ENOTDIR"},       {21, "EISDIR"},
    {22, "EINVAL"},       {23, "ENFILE"},        {24, "EMFILE"},        {27, "EFBIG"},
    {28, "ENOSPC"},       {29, "ESPIPE"},        {30, "EROFS"},         {32, "EPIPE"},
    {34, "ERANGE"},       {36, "ENAMETOOLONG"},  {38, "ENOSYS"},        {39, "ENOTEMPTY"},
    {52, "EBADE"},        {61, "ENODATA"},       {62, "ETIME"},         {71, "EPROTO"},
    {74, "EBADMSG"},      {75, "EOVERFLOW"},     {84, "EILSEQ"},        {90, "EMSGSIZE"},
    {95, "EOPNOTSUPP"},   {98, "EADDRINUSE"},    {99, "EADDRNOTAVAIL"}, {100, "ENETDOWN"},
    {101, "ENETUNREACH"}, {103, "ECONNABORTED"}, {104, "ECONNRESET"},   {105, "ENOBUFS"},
    {107, "ENOTCONN"},    {108, "ESHUTDOWN"},    {110, "ETIMEDOUT"},    {111, "ECONNREFUSED"},
    {112, "EHOSTDOWN"},   {113, "EHOSTUNREACH"}, {114, "EALREADY"},     {115, "EINPROGRESS"},
    {116, "ESTALE"},      {121, "EREMOTEIO"},    {122, "EDQUOT"},       {125, "ECANCELED"}};

void ulp_error_text(struct buf *b, uint32_t error)
{
    const char *name = vname_find(errors, ARRAY_LEN(errors), error);

    buf_printf(b, "error %u", error);
    if (name)
        buf_printf(b, " (%s)", name);
}
