/*
 * frame_package: the package, name space, crate or module at the start of a function's name, which
 * determines its colour. Equal to packageOf in web/src/model/colours/frame_colours.ts;
 * tests/frame_packages.txt tests both. Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_FRAME_PACKAGE_H
#define LIB_PROFILE_PICTURE_FRAME_PACKAGE_H

#include "lib/base/span.h"

struct frame;

/* Returns the package in the frame's name, else the file name of its binary, else the directory of
 * its source file or, without a directory, the file; else an empty span. Borrowed from the frame.
 */
struct span frame_package(const struct frame *frame);

/* The last part of a path. */
struct span frame_base_name(struct span path);

#endif
