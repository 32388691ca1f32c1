/*
 * operator: administration of the server: its tenants, their first users and tokens, sign-in links:
 * /api/v1/admin/tenants and /api/v1/admin/login-codes. Everything needs SCOPE_OPERATOR and uses the
 * pool of perfolio_jobs, which sees all tenants.
 */
#ifndef API_IDENTITY_OPERATOR_H
#define API_IDENTITY_OPERATOR_H

#include "api/http/request.h"

enum { OPERATOR_CODE_LIFETIME_S = 24 * 3600 };

enum err_code operator_list_tenants(struct request *request, struct response *response,
                                    struct err *err);
enum err_code operator_post_tenant(struct request *request, struct response *response,
                                   struct err *err);
enum err_code operator_get_tenant(struct request *request, struct response *response,
                                  struct err *err);
enum err_code operator_patch_tenant(struct request *request, struct response *response,
                                    struct err *err);
enum err_code operator_delete_tenant(struct request *request, struct response *response,
                                     struct err *err);
enum err_code operator_people_list_users(struct request *request, struct response *response,
                                         struct err *err);
enum err_code operator_people_delete_user(struct request *request, struct response *response,
                                          struct err *err);
enum err_code operator_people_list_tokens(struct request *request, struct response *response,
                                          struct err *err);
enum err_code operator_people_delete_token(struct request *request, struct response *response,
                                           struct err *err);
enum err_code operator_post_user(struct request *request, struct response *response,
                                 struct err *err);
enum err_code operator_post_token(struct request *request, struct response *response,
                                  struct err *err);
enum err_code operator_post_login_code(struct request *request, struct response *response,
                                       struct err *err);

#endif
