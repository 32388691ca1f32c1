/* Prints offsets in Ruby's structures; compiled with Ruby's header, see offsets.sh. */
#include <stdio.h>

#define SHOW(type, member)                                                                         \
    printf("%s.%s %zu\n", #type, #member, __builtin_offsetof(struct type, member))

int main(void)
{
    SHOW(rb_execution_context_struct, vm_stack);
    SHOW(rb_execution_context_struct, vm_stack_size);
    SHOW(rb_execution_context_struct, cfp);
    SHOW(rb_execution_context_struct, thread_ptr);
    SHOW(rb_control_frame_struct, pc);
    SHOW(rb_control_frame_struct, iseq);
    SHOW(rb_control_frame_struct, ep);
    printf("rb_control_frame_struct %zu\n", sizeof(struct rb_control_frame_struct));
    SHOW(rb_iseq_struct, body);
    SHOW(rb_iseq_constant_body, iseq_size);
    SHOW(rb_iseq_constant_body, iseq_encoded);
    SHOW(rb_iseq_constant_body, location.pathobj);
    SHOW(rb_iseq_constant_body, location.label);
    SHOW(rb_iseq_constant_body, location.first_lineno);
    SHOW(rb_iseq_constant_body, insns_info.body);
    SHOW(rb_iseq_constant_body, insns_info.size);
    SHOW(rb_iseq_constant_body, insns_info.succ_index_table);
    printf("iseq_insn_info_entry %zu\n", sizeof(struct iseq_insn_info_entry));
    SHOW(rb_thread_struct, ec);
    SHOW(rb_thread_struct, thread_id);
    SHOW(rb_vm_struct, ractor.main_thread);
    SHOW(RString, as.heap.len);
    SHOW(RString, as.heap.ptr);
    SHOW(RString, as.embed.ary);
    SHOW(RArray, as.ary);
    SHOW(RArray, as.heap.ptr);
    return 0;
}
