/*
 * object_folder_list: lists the directories of object_folder.c, to which it is private.
 *
 * Descriptors are borrowed. Threads: any.
 */
#ifndef LIB_IO_OBJECT_FOLDER_LIST_H
#define LIB_IO_OBJECT_FOLDER_LIST_H

#include "lib/io/object_backend.h"

/* Opens a directory; the caller closes *ret_fd. Errors: ERR_NOT_FOUND, ERR_IO. */
enum err_code object_folder_list_open(int directory_fd, const char *name, int *ret_fd,
                                      struct err *err) MUST_USE;

/* list and list_all of object_backend.h, for the store's directory top_fd. */
enum err_code object_folder_list_objects(int top_fd, const char *prefix, object_visit *visit,
                                         void *context, struct err *err) MUST_USE;
enum err_code object_folder_list_all(int top_fd, object_visit *visit, void *context,
                                     struct err *err) MUST_USE;

/* Deletes all files of the directory of unfinished objects. Continues after a file that cannot be
 * deleted and returns ERR_IO at the end. */
enum err_code object_folder_list_delete_all(int temporary_fd, struct err *err) MUST_USE;

#endif
