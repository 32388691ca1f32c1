/*
 * admin_table: the calls of `perfolio admin` as a table: request, use of the arguments, and the
 * members of the response that are printed.
 */
#ifndef CLI_ADMIN_ADMIN_TABLE_H
#define CLI_ADMIN_ADMIN_TABLE_H

#include <stddef.h>

enum { ADMIN_MAX_COLUMNS = 8 };

enum admin_uses {
    TAKES_ID = 1 << 0,   /* the first argument goes into the path */
    TAKES_LINK = 1 << 1, /* the first argument is a link or id of a share; the id goes into path */
    NEEDS_TENANT = 1 << 2,    /* --tenant goes into the path */
    MAY_HAVE_TENANT = 1 << 3, /* with --tenant, tenant_path is used */
    TAKES_PAIRS = 1 << 4,     /* KEY=VALUE … become the body */
    TAKES_ROLE = 1 << 5,      /* --role becomes a member of the body; likewise the next four */
    TAKES_SCOPES = 1 << 6,
    TAKES_EXPIRES = 1 << 7,
    TAKES_REASON = 1 << 8,
    TAKES_NAME = 1 << 9,
    IS_OPTIONAL = 1 << 10,  /* the argument that becomes field is optional */
    NEEDS_YES = 1 << 11,    /* cannot be undone */
    IS_PAGED = 1 << 12,     /* a list of which all pages are requested */
    TAKES_WINDOW = 1 << 13, /* --start and --end; the path has a query */
    TAKES_KEEP = 1 << 14,   /* --keep, --totals and --position, members of the body */
    TAKES_TEXTS = 1 << 15   /* with TAKES_PAIRS: all values are texts, and pairs are optional */
};

struct admin_call {
    const char *noun;
    const char *verb;      /* NULL: the call has only a noun */
    const char *arguments; /* for help; NULL: none */
    const char *summary;
    const char *method;
    const char *path;        /* with at most one %s, for the id or the tenant */
    const char *tenant_path; /* with --tenant; the %s of the tenant comes first */
    const char *field;       /* member of the body: the first argument that is not part of the path;
                                NULL: none */
    unsigned uses;           /* enum admin_uses */
    const char *result;      /* the only member to print on standard output; NULL: none, or all of a
                                GET */
    const char *columns[ADMIN_MAX_COLUMNS]; /* members of a list's rows to print as a table;
                                               "outer.inner" is a member of a member */
};

extern const struct admin_call admin_calls[];
extern const size_t admin_call_count;

/* Nouns that run perfoliod on this machine instead of calling the server; ends with a NULL noun. */
struct admin_program {
    const char *noun;
    const char *arguments;
    const char *summary;
    const char *text; /* the rest of its help */
};
extern const struct admin_program admin_programs[];

/* Returns the uses (bits of enum admin_uses) of which a call must have at least one to take the
 * option `name`; 0: every call takes it. */
unsigned admin_option_uses(const char *name);

#endif
